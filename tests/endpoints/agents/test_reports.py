"""What agents tell: kept once, within bounds, and of what was discovered nothing is left that is gone."""

import json
from dataclasses import replace

import pytest
from pyotp import TOTP

from sallyport.base.agentwire.report import Action as Done
from sallyport.base.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, Outcome, PrivilegeStatus
from sallyport.base.agentwire.state import TriggerKind
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, NotFound
from sallyport.endpoints.agents import reports
from sallyport.endpoints.agents.orders import LONGEST_US
from sallyport.endpoints.agents.repo import KEPT_ORDERS, MOST_OPEN
from sallyport.endpoints.agents.reports_repo import MOST_OF_KIND
from sallyport.endpoints.groups.group import NewGroup
from sallyport.endpoints.imports import import_users
from sallyport.endpoints.membership import Action
from sallyport.endpoints.users.account import UserChange, UserQuery
from tests.areas import Areas, SetClock
from tests.endpoints import trail
from tests.endpoints.agents.hosts import Host, user


def account(name: str, uid: int = 1000) -> FoundAccount:
    """A local account."""
    return FoundAccount(name, uid, uid, home=f"/home/{name}", shell="/bin/bash")  # noqa: S604


def discovery(*accounts: FoundAccount) -> Discovery:
    """What was found."""
    return Discovery(at=1, accounts=accounts)


async def people(areas: Areas) -> dict[str, str]:
    """Where each user comes from."""
    rows, _ = await areas.accounts.page(UserQuery(areas.domain, limit=1000))
    return {row.account.name: row.account.source for row in rows}


async def test_a_report_that_comes_twice(areas: Areas, host: Host) -> None:
    """Is kept once, and an order that was given again in between is not ended by it."""
    (first,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert await host.report(outcomes=(Outcome(first.id),))
    (second,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert not await host.report(outcomes=(Outcome(second.id),))
    newest = await areas.agents.orders.newest(host.id, 10)
    assert [(each.id, each.outcome) for each in newest] == [(second.id, "waiting"), (first.id, "done")]


async def test_a_huge_report(areas: Areas, host: Host) -> None:
    """Is kept in part, what failed first."""
    actions = [Done("create", f"user{number}", "x" * 500) for number in range(2000)]
    await host.report(actions=(*actions, Done("delete", "bob", error="busy")))
    (kept,), total = await areas.agents.reports.newest(host.id, 10)
    told = json.loads(kept.told)
    assert total == 1
    assert len(kept.told) < 2 * reports.LONGEST
    assert (kept.outcome, told["more"], told["actions"][0]["error"]) == ("errors", True, "busy")


async def test_an_outcome_of_another_machine(areas: Areas, host: Host) -> None:
    """Ends no order."""
    other = await Host.register(areas, "db")
    (order,) = await areas.agents.orders.give(areas.domain, [other.id], TriggerKind.SYNC)
    await host.report(outcomes=(Outcome(order.id),))
    assert (await areas.agents.orders.newest(other.id, 1))[0].outcome == "waiting"


async def test_drift_is_bounded(areas: Areas, host: Host, clock: SetClock) -> None:
    """Of each kind so many things of a machine are known to last; the same thing is one however often it is told."""
    for turn in range(3):
        found = tuple(Drift(DriftKind.KEY, "ann", f"{turn} {number}") for number in range(1500))
        await host.report(f"report-{turn:04}", drift=found)
        clock.pass_by(1)
    _, lasting = await areas.agents.reports.drift(areas.domain, host.id, lasting=True, limit=5, offset=0)
    _, total = await areas.agents.reports.drift(areas.domain, host.id, lasting=False, limit=5, offset=0)
    assert (lasting, total) == (MOST_OF_KIND, 3 * MOST_OF_KIND)
    same = Drift(DriftKind.SUDOERS, "eve", "/etc/sudoers.d/x")
    for _ in range(3):
        clock.pass_by(1)
        await areas.agents.reports.take_privileges(host.id, PrivilegeStatus(1, 1, drift=(same, same)))
    rows, _ = await areas.agents.reports.drift(areas.domain, host.id, lasting=True, limit=1, offset=0)
    assert (rows[0].subject, rows[0].last_at - rows[0].first_at) == ("eve", 2_000_000)
    actions = [entry.action for entry in await trail(areas)]
    assert actions.count("agent.drift") == 4


async def test_who_is_discovered(areas: Areas, host: Host) -> None:
    """People's accounts alone become users, each once in the domain, and go when the last machine has them no more; a
    user that was there before stays what it is."""
    await user(areas, "ann")
    other = await Host.register(areas, "db")
    await host.report(discovery=discovery(account("ann"), account("eve", 1001), account("daemon", 1), account("a b")))
    await other.report(discovery=discovery(account("eve", 1000)))
    assert await people(areas) == {"ann": "Local", "eve": "discovered"}
    await host.report("report-0002", discovery=discovery())
    assert await people(areas) == {"ann": "Local", "eve": "discovered"}
    await other.report("report-0002", discovery=discovery())
    assert await people(areas) == {"ann": "Local"}


async def test_rights_on_one_machine_are_none_elsewhere(areas: Areas, host: Host) -> None:
    """Who may do what root may on the machine that tells of him is not privileged for that, nor when an admin adds
    a user of the name."""
    mighty = replace(account("eve"), sudo=("ALL=(ALL) ALL",))
    await host.report(discovery=discovery(mighty))
    other = await Host.register(areas, "db")
    await other.assign("eve")
    assert not (await other.user("eve")).privileged
    await user(areas, "eve")
    assert not (await other.user("eve")).privileged


async def test_nobody_is_gone_for_a_list_that_was_cut_off(areas: Areas, host: Host) -> None:
    """Only a complete one says that an account is not there any more."""
    await host.report(discovery=discovery(account("eve"), account("bob")))
    await host.report("report-0002", discovery=replace(discovery(account("bob")), complete=False))
    assert await people(areas) == {"eve": "discovered", "bob": "discovered"}
    await host.report("report-0003", discovery=discovery(account("bob")))
    assert await people(areas) == {"bob": "discovered"}


async def test_lists_that_are_cut_off_make_no_more_users(areas: Areas, host: Host) -> None:
    """Than a complete one, however many there are."""
    for turn in range(3):
        found = discovery(*(account(f"u{turn}-{number}") for number in range(reports.MOST_PEOPLE)))
        await host.report(f"report-{turn:04}", discovery=replace(found, complete=False))
    assert len(await people(areas)) == reports.MOST_PEOPLE


async def test_who_was_assigned_stays(areas: Areas, host: Host) -> None:
    """A user whom an admin has assigned to a machine or a group is his, whatever a machine does not find any more."""
    await host.report(discovery=discovery(account("eve"), account("bob"), account("joe")))
    other = await Host.register(areas, "db")
    await other.assign("eve")
    bob = await areas.users.load(areas.domain, "bob")
    assert bob is not None
    group_id = await areas.groups.add(areas.domain, NewGroup("ops"), [other.id])
    await areas.groups.assign_users(areas.domain, group_id, [bob.id], Action.ADD)
    await host.report("report-0002", discovery=discovery())
    assert await people(areas) == {"eve": "discovered", "bob": "discovered"}
    assert [each.name for each in (await other.fetch()).users] == ["bob", "eve"]


async def test_who_was_given_something_stays(areas: Areas, host: Host) -> None:
    """A user to whom an admin has given a password or a seed, or whom a file names, is a user like any other."""
    await host.report(discovery=discovery(*map(account, ("eve", "bob", "joe", "ann"))))
    await areas.accounts.update(areas.domain, "eve", UserChange(password=b"a password"))
    (planned,) = await import_users(areas.store, areas.accounts, areas.domain, [{"userName": "bob"}], apply=True)
    assert (planned.outcome, planned.changes) == ("changed", ["source"])
    made, _ = await areas.seeds.enrol(areas.domain, "joe")
    assert (await areas.seeds.confirm(areas.domain, "joe", TOTP(made.seed).at(areas.clock.now // SECOND))).right
    await host.report("report-0002", discovery=discovery())
    assert await people(areas) == {"eve": "Local", "bob": "Local", "joe": "discovered"}


async def test_a_machine_that_is_deleted(areas: Areas, host: Host) -> None:
    """Who was discovered there alone goes with it; who was so on another machine, or is somebody's user, stays."""
    await user(areas, "ann")
    other = await Host.register(areas, "db")
    await host.report(discovery=discovery(*map(account, ("ann", "eve", "bob"))))
    await other.report(discovery=discovery(account("bob")))
    await areas.instances.remove(areas.domain, host.id)
    assert await people(areas) == {"ann": "Local", "bob": "discovered"}
    await areas.instances.remove(areas.domain, other.id)
    assert await people(areas) == {"ann": "Local"}


async def test_a_machine_with_very_many_accounts(areas: Areas, host: Host) -> None:
    """All are listed, and so many become users as a machine has people."""
    await host.report(discovery=discovery(*(account(f"user{number}") for number in range(1000))))
    assert len(await people(areas)) == reports.MOST_PEOPLE
    _, total = await areas.agents.reports.discovered(host.id, "account", 1)
    assert total == 1000


async def test_a_login_sees_who_was_discovered(areas: Areas, host: Host) -> None:
    """At once, also where nobody of that name was known a moment before; nobody logs in as who was only discovered."""
    assert await areas.users.load(areas.domain, "eve") is None
    await host.report(discovery=discovery(account("eve")))
    found = await areas.users.load(areas.domain, "eve")
    assert found is not None
    assert found.passwords == ()


async def test_accounts_of_the_system_are_not_taken_over(areas: Areas, host: Host) -> None:
    """Not even where a user has the name; and nothing of the others is done then."""
    await user(areas, "root")
    await host.report(discovery=discovery(account("root", 0), account("eve")))
    with pytest.raises(Conflict, match="system"):
        await areas.agents.take_over(areas.domain, host.id, ["eve", "root"], Action.ADD)
    assert (await host.fetch()).users == ()
    assert (await people(areas))["eve"] == "discovered"


async def test_orders_are_bounded(areas: Areas, host: Host, clock: SetClock) -> None:
    """So many wait for a machine and no more; ended ones are forgotten in the end; one that nobody comes for ends."""
    for number in range(MOST_OPEN):
        await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.ROTATE, [f"u{number}"])
    with pytest.raises(Conflict, match="orders wait"):
        await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert len((await host.fetch()).triggers) == MOST_OPEN
    clock.pass_by(LONGEST_US / 1e6 + 1)
    await areas.agents.orders.sweep()
    assert (await host.fetch()).triggers == ()
    assert {each.outcome for each in await areas.agents.orders.newest(host.id, 100)} == {"failed"}
    for number in range(5):
        (order,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
        await host.report(f"report-{number:04}", outcomes=(Outcome(order.id),))
    assert len(await areas.agents.orders.newest(host.id, 1000)) == KEPT_ORDERS


async def test_orders_are_all_or_none(areas: Areas, host: Host) -> None:
    """A machine that is not there keeps the others from being told."""
    with pytest.raises(NotFound):
        await areas.agents.orders.give(areas.domain, [host.id, 999], TriggerKind.SYNC)
    assert await areas.agents.orders.newest(host.id, 10) == []

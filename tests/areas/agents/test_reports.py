"""Tests of agents' reports: each report is stored once and within limits, and a discovered user is removed with its
last account."""

import json
from dataclasses import replace

import pytest
from pyotp import TOTP

from sallyport.agentwire.report import Action as Done
from sallyport.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, Outcome, PrivilegeStatus
from sallyport.agentwire.state import TriggerKind
from sallyport.areas.agents import reports
from sallyport.areas.agents.orders import MAX_US
from sallyport.areas.agents.repo import KEPT_ORDERS, MAX_OPEN
from sallyport.areas.agents.reports_repo import MAX_OF_KIND
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.imports import import_users
from sallyport.areas.users.membership import Action
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Host, user
from tests.areas.users import trail


def account(name: str, uid: int = 1000) -> FoundAccount:
    """Return a local account."""
    return FoundAccount(name, uid, uid, home=f"/home/{name}", shell="/bin/bash")  # noqa: S604


def discovery(*accounts: FoundAccount) -> Discovery:
    """Return a report of these discovered accounts."""
    return Discovery(at=1, accounts=accounts)


async def user_sources(areas: Areas) -> dict[str, str]:
    """Return the source of each user by name."""
    rows, _ = await areas.accounts.page(UserQuery(areas.domain, limit=1000))
    return {row.name: row.source for row in rows}


async def test_a_repeated_report(areas: Areas, host: Host) -> None:
    """A repeated report is stored once. It does not complete an order that was given after the first copy."""
    (first,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert await host.report(outcomes=(Outcome(first.id),))
    (second,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert not await host.report(outcomes=(Outcome(second.id),))
    newest = await areas.agents.orders.newest(host.id, 10)
    assert [(each.id, each.outcome) for each in newest] == [(second.id, "waiting"), (first.id, "done")]


async def test_a_huge_report(areas: Areas, host: Host) -> None:
    """If a report exceeds the size limit, only a part of it is stored, and failed actions are stored first."""
    actions = [Done("create", f"user{number}", "x" * 500) for number in range(2000)]
    await host.report(actions=(*actions, Done("delete", "bob", error="busy")))
    (kept,), total = await areas.agents.reports.newest(host.id, 10)
    stored = json.loads(kept.told)
    assert total == 1
    assert len(kept.told) < 2 * reports.MAX_LENGTH
    assert (kept.outcome, stored["more"], stored["actions"][0]["error"]) == ("errors", True, "busy")


async def test_an_outcome_of_another_machine(areas: Areas, host: Host) -> None:
    """A report from one machine cannot complete an order for another machine."""
    other = await Host.register(areas, "db")
    (order,) = await areas.agents.orders.give(areas.domain, [other.id], TriggerKind.SYNC)
    await host.report(outcomes=(Outcome(order.id),))
    assert (await areas.agents.orders.newest(other.id, 1))[0].outcome == "waiting"


async def test_drift_is_bounded(areas: Areas, host: Host, clock: SetClock) -> None:
    """A machine has at most MAX_OF_KIND current deviations of each kind.

    If a deviation is reported again, only its last time changes.
    """
    for turn in range(3):
        found = tuple(Drift(DriftKind.KEY, "ann", f"{turn} {number}") for number in range(1500))
        await host.report(f"report-{turn:04}", drift=found)
        clock.pass_by(1)
    _, lasting = await areas.agents.reports.drift(areas.domain, host.id, lasting=True, limit=5, offset=0)
    _, total = await areas.agents.reports.drift(areas.domain, host.id, lasting=False, limit=5, offset=0)
    assert (lasting, total) == (MAX_OF_KIND, 3 * MAX_OF_KIND)
    same = Drift(DriftKind.SUDOERS, "eve", "/etc/sudoers.d/x")
    for _ in range(3):
        clock.pass_by(1)
        await areas.agents.reports.take_privileges(host.id, PrivilegeStatus(1, 1, drift=(same, same)))
    rows, _ = await areas.agents.reports.drift(areas.domain, host.id, lasting=True, limit=1, offset=0)
    assert (rows[0].subject, rows[0].last_at - rows[0].first_at) == ("eve", 2_000_000)
    actions = [entry.action for entry in await trail(areas)]
    assert actions.count("agent.drift") == 4


async def test_discovered_users(areas: Areas, host: Host) -> None:
    """An account of a person becomes a discovered user, and a user is added only once in a domain.

    A system account does not become a user. A discovered user is removed with its last account. A user that existed
    before stays unchanged.
    """
    await user(areas, "ann")
    other = await Host.register(areas, "db")
    await host.report(discovery=discovery(account("ann"), account("eve", 1001), account("daemon", 1), account("a b")))
    await other.report(discovery=discovery(account("eve", 1000)))
    assert await user_sources(areas) == {"ann": "Local", "eve": "discovered"}
    await host.report("report-0002", discovery=discovery())
    assert await user_sources(areas) == {"ann": "Local", "eve": "discovered"}
    await other.report("report-0002", discovery=discovery())
    assert await user_sources(areas) == {"ann": "Local"}


async def test_privileges_on_one_machine_hold_on_no_other(areas: Areas, host: Host) -> None:
    """If a discovered account has root rights on one machine, its user gets no privilege on another machine. This also
    holds after an admin adds the user."""
    mighty = replace(account("eve"), sudo=("ALL=(ALL) ALL",))
    await host.report(discovery=discovery(mighty))
    other = await Host.register(areas, "db")
    await other.assign("eve")
    assert not (await other.user("eve")).privileged
    await user(areas, "eve")
    assert not (await other.user("eve")).privileged


async def test_a_truncated_list_removes_no_user(areas: Areas, host: Host) -> None:
    """Only a complete list of accounts removes the discovered users that are not in it."""
    await host.report(discovery=discovery(account("eve"), account("bob")))
    await host.report("report-0002", discovery=replace(discovery(account("bob")), complete=False))
    assert await user_sources(areas) == {"eve": "discovered", "bob": "discovered"}
    await host.report("report-0003", discovery=discovery(account("bob")))
    assert await user_sources(areas) == {"bob": "discovered"}


async def test_truncated_lists_are_bounded(areas: Areas, host: Host) -> None:
    """Any number of truncated lists creates at most MAX_PEOPLE users, like one complete list."""
    for turn in range(3):
        found = discovery(*(account(f"u{turn}-{number}") for number in range(reports.MAX_PEOPLE)))
        await host.report(f"report-{turn:04}", discovery=replace(found, complete=False))
    assert len(await user_sources(areas)) == reports.MAX_PEOPLE


async def test_an_assigned_user_stays(areas: Areas, host: Host) -> None:
    """A discovered user that an admin has assigned to a machine or a group stays when its account disappears."""
    await host.report(discovery=discovery(account("eve"), account("bob"), account("joe")))
    other = await Host.register(areas, "db")
    await other.assign("eve")
    bob = await areas.users.load(areas.domain, "bob")
    assert bob is not None
    group_id = await areas.groups.add(areas.domain, Group("ops"), [other.id])
    await areas.groups.assign_users(areas.domain, group_id, [bob.id], Action.ADD)
    await host.report("report-0002", discovery=discovery())
    assert await user_sources(areas) == {"eve": "discovered", "bob": "discovered"}
    assert [each.name for each in (await other.fetch()).users] == ["bob", "eve"]


async def test_a_changed_user_stays(areas: Areas, host: Host) -> None:
    """A discovered user stays after an admin has set its password or its seed, or has imported the user from a file."""
    await host.report(discovery=discovery(*map(account, ("eve", "bob", "joe", "ann"))))
    await areas.accounts.update(areas.domain, "eve", UserChange(password=b"a password"))
    (planned,) = await import_users(areas.store, areas.accounts, areas.domain, [{"userName": "bob"}], apply=True)
    assert (planned.outcome, planned.changes) == ("changed", ["source"])
    made, _ = await areas.seeds.enrol(areas.domain, "joe")
    assert (await areas.seeds.confirm(areas.domain, "joe", TOTP(made.seed).at(areas.clock.now // SECOND))).right
    await host.report("report-0002", discovery=discovery())
    assert await user_sources(areas) == {"eve": "Local", "bob": "Local", "joe": "discovered"}


async def test_a_deleted_machine(areas: Areas, host: Host) -> None:
    """Users that were discovered only on the deleted machine are removed with it.

    Users that were also discovered on another machine stay, and so do local users.
    """
    await user(areas, "ann")
    other = await Host.register(areas, "db")
    await host.report(discovery=discovery(*map(account, ("ann", "eve", "bob"))))
    await other.report(discovery=discovery(account("bob")))
    await areas.instances.remove(areas.domain, host.id)
    assert await user_sources(areas) == {"ann": "Local", "bob": "discovered"}
    await areas.instances.remove(areas.domain, other.id)
    assert await user_sources(areas) == {"ann": "Local"}


async def test_a_machine_with_very_many_accounts(areas: Areas, host: Host) -> None:
    """All accounts of a machine are listed, and at most MAX_PEOPLE of them become users."""
    await host.report(discovery=discovery(*(account(f"user{number}") for number in range(1000))))
    assert len(await user_sources(areas)) == reports.MAX_PEOPLE
    _, total = await areas.agents.reports.discovered(host.id, "account", 1)
    assert total == 1000


async def test_a_login_sees_a_discovered_user(areas: Areas, host: Host) -> None:
    """The next login already finds a discovered user, which has no password."""
    assert await areas.users.load(areas.domain, "eve") is None
    await host.report(discovery=discovery(account("eve")))
    found = await areas.users.load(areas.domain, "eve")
    assert found is not None
    assert found.passwords == ()


async def test_accounts_of_the_system_are_not_taken_over(areas: Areas, host: Host) -> None:
    """An order to take over a system account is refused completely, even if a user has that name."""
    await user(areas, "root")
    await host.report(discovery=discovery(account("root", 0), account("eve")))
    with pytest.raises(Conflict, match="system"):
        await areas.agents.take_over(areas.domain, host.id, ["eve", "root"], Action.ADD)
    assert (await host.fetch()).users == ()
    assert (await user_sources(areas))["eve"] == "discovered"


async def test_orders_are_bounded(areas: Areas, host: Host, clock: SetClock) -> None:
    """A machine has at most MAX_OPEN waiting orders.

    An order that no agent fetches fails after a while. Only KEPT_ORDERS finished orders are kept.
    """
    for number in range(MAX_OPEN):
        await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.ROTATE, [f"u{number}"])
    with pytest.raises(Conflict, match="orders wait"):
        await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    assert len((await host.fetch()).triggers) == MAX_OPEN
    clock.pass_by(MAX_US / 1e6 + 1)
    await areas.agents.orders.sweep()
    assert (await host.fetch()).triggers == ()
    assert {each.outcome for each in await areas.agents.orders.newest(host.id, 100)} == {"failed"}
    for number in range(5):
        (order,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
        await host.report(f"report-{number:04}", outcomes=(Outcome(order.id),))
    assert len(await areas.agents.orders.newest(host.id, 1000)) == KEPT_ORDERS


async def test_orders_are_all_or_none(areas: Areas, host: Host) -> None:
    """If an order names an unknown machine, no machine gets the order."""
    with pytest.raises(NotFound):
        await areas.agents.orders.give(areas.domain, [host.id, 999], TriggerKind.SYNC)
    assert await areas.agents.orders.newest(host.id, 10) == []

"""Tests of password rotation on hosts: the service always knows every password that may be in force."""

import pytest

from sallyport.agentwire.fields import NO_PASSWORD
from sallyport.agentwire.report import Discovery, FoundAccount, Outcome, Phase
from sallyport.agentwire.state import TriggerKind
from sallyport.areas.agents.rotation import KEPT_FORMER, MAX_ACCOUNTS, MAX_CANDIDATES, Rotations
from sallyport.areas.agents.states import States
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.membership import Action
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.base.sha512crypt import matches
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Failing, Host, user

DAY = 86_400


async def known(areas: Areas, host: Host, name: str = "ann") -> list[tuple[str, str]]:
    """Return the passwords of an account with their states."""
    found = await areas.agents.rotations.show(areas.domain, host.id, name, reveal=True)
    return [(each.password, each.state) for each in found]


async def rotate_fully(host: Host, password: str, number: str) -> None:
    """Run a complete rotation: escrow the password, then confirm it."""
    await host.rotate(Phase.ESCROW, password, number=number)
    await host.rotate(Phase.CONFIRM, password, number=number)


async def test_the_password_in_force_is_always_known(areas: Areas, host: Host, clock: SetClock) -> None:
    """The password in force is known at each step of a rotation.

    The state has the new hash only after the confirmation.
    """
    await user(areas, "ann", password=b"first")
    await host.assign("ann")
    before = (await host.user("ann")).password_hash
    clock.pass_by(1)
    await host.rotate(Phase.ESCROW, "second")
    assert await known(areas, host) == [("first", "set"), ("second", "candidate")]
    assert (await host.user("ann")).password_hash == before
    await host.rotate(Phase.CONFIRM, "second")
    assert await known(areas, host) == [("second", "current")]
    assert matches(b"second", (await host.user("ann")).password_hash)
    clock.pass_by(1)
    await rotate_fully(host, "third", "rotation-3")
    assert await known(areas, host) == [("third", "current"), ("second", "former")]
    await areas.accounts.update(areas.domain, 1, UserChange(password=b"by an admin"))
    clock.pass_by(1)
    assert matches(b"by an admin", (await host.user("ann")).password_hash)
    assert (await known(areas, host))[0] == ("by an admin", "set")


async def test_an_abandoned_password(areas: Areas, host: Host) -> None:
    """An abandoned candidate is removed. If the message that abandons it is repeated, it succeeds."""
    await host.rotate(Phase.ESCROW, "second")
    for _ in range(2):
        await host.rotate(Phase.ABANDON, "second")
    assert await known(areas, host) == []


async def test_unfinished_candidates(areas: Areas, host: Host) -> None:
    """Unfinished candidates are listed until a later one is confirmed.

    Too many of them do not prevent a further rotation, and the password in force remains known.
    """
    await rotate_fully(host, "in force", "rotation-0")
    for number in range(1, MAX_CANDIDATES + 2 * KEPT_FORMER):
        await host.rotate(Phase.ESCROW, f"p{number}", number=f"rotation-{number}")
        assert (await known(areas, host))[0] == ("in force", "current")
    states = [state for _, state in await known(areas, host)]
    assert states == ["current"] + ["candidate"] * MAX_CANDIDATES + ["former"] * KEPT_FORMER
    await host.rotate(Phase.CONFIRM, "", number="rotation-17")
    states = [state for _, state in await known(areas, host)]
    assert states == ["current"] + ["candidate"] * 12 + ["former"]


async def test_a_displaced_candidate(areas: Areas, host: Host) -> None:
    """A candidate that was moved to the former passwords can still be confirmed.

    A candidate older than a confirmed one cannot.
    """
    for number in range(MAX_CANDIDATES + 2):
        await host.rotate(Phase.ESCROW, f"p{number}", number=f"rotation-{number}")
    await host.rotate(Phase.CONFIRM, "", number="rotation-1")
    assert (await known(areas, host))[0] == ("p1", "current")
    with pytest.raises(NotFound):
        await host.rotate(Phase.CONFIRM, "", number="rotation-0")


async def test_accounts_of_a_machine_are_bounded(areas: Areas, host: Host) -> None:
    """An agent that invents accounts is refused at MAX_ACCOUNTS. Rotations of known accounts continue."""
    await rotate_fully(host, "first", "rotation-0")
    names = ("domain_id", "instance_id", "account", "rotation", "password", "hash", "state", "stored_at")
    made_up = [f"a{number}" for number in range(MAX_ACCOUNTS - 1)]
    rows = [(areas.domain, host.id, name, f"made-up-{name}", b"", b"", "former", 1) for name in made_up]
    await areas.store.write(lambda tx: tx.insert("agent_passwords", names, rows))
    with pytest.raises(Conflict):
        await host.rotate(Phase.ESCROW, "another", user="bob", number="rotation-1")
    await rotate_fully(host, "second", "rotation-2")
    assert (await known(areas, host))[0] == ("second", "current")


async def test_former_passwords(areas: Areas, host: Host) -> None:
    """The newest KEPT_FORMER former passwords are kept, because a host may be restored from a snapshot."""
    for number in range(KEPT_FORMER + 3):
        await rotate_fully(host, f"p{number}", f"rotation-{number}")
    found = await known(areas, host)
    assert found[0] == (f"p{KEPT_FORMER + 2}", "current")
    assert [password for password, _ in found[1:]] == [f"p{number}" for number in range(KEPT_FORMER + 1, 1, -1)]


async def test_each_machine_has_its_own_password(areas: Areas, host: Host) -> None:
    """A password that was made on one host is valid neither on another host nor for a RADIUS login."""
    await user(areas, "ann", password=b"first")
    other = await Host.register(areas, "db")
    for each in (host, other):
        await each.assign("ann")
    await host.fetch()
    await rotate_fully(host, "second", "rotation-1")
    assert matches(b"first", (await other.user("ann")).password_hash)
    assert matches(b"second", (await host.user("ann")).password_hash)
    found = await areas.users.load(areas.domain, "ann")
    assert found is not None
    assert found.passwords == (b"first",)


async def test_nothing_is_readable_in_the_store(areas: Areas, host: Host) -> None:
    """The store contains neither the password nor its hash in plain text."""
    await rotate_fully(host, "a very long password", "rotation-1")
    rows = await areas.store.read(lambda tx: tx.rows("select * from agent_passwords"))
    assert "a very long password" not in str(rows)
    assert "$6$" not in str(rows)


async def test_an_order_to_rotate_all_users(areas: Areas, host: Host, clock: SetClock) -> None:
    """An order without names lists all users that have a password.

    If there are none, the order fails at once and is in no state.
    """
    (order,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.ROTATE)
    assert (order.outcome, order.error) == ("failed", "no account on this machine has a password")
    assert (await host.fetch()).triggers == ()
    for name in ("ann", "bob"):
        await user(areas, name, password=b"first")
        await host.assign(name)
    await user(areas, "keys-only")
    await host.assign("keys-only")
    (order,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.ROTATE)
    assert order.accounts == ("ann", "bob")
    assert [each.users for each in (await host.fetch()).triggers] == [("ann", "bob")]


@pytest.mark.parametrize("name", ["Alice Smith", "Ann", "", "x" * 33], ids=["blank", "capital", "empty", "long"])
async def test_an_order_for_an_invalid_account_name(areas: Areas, host: Host, name: str) -> None:
    """An order that contains an invalid account name is refused."""
    with pytest.raises(Invalid, match="invalid userNames"):
        await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.ROTATE, ["ann", name])
    assert await areas.agents.orders.newest(host.id, 1) == []


async def test_scheduled_rotation(areas: Areas, host: Host, clock: SetClock) -> None:
    """The schedule orders a rotation for each password that is older than `rotateDays`.

    A failed rotation is repeated after an hour; a successful one is not repeated.
    """
    for name in ("ann", "bob"):
        await user(areas, name, password=b"first")
        await host.assign(name)
    await user(areas, "keys-only")
    await host.assign("keys-only")
    await host.fetch()
    await areas.agents.change_settings(areas.domain, 0, {"rotateDays": 30})
    await areas.agents.rotations.sweep()
    assert (await host.fetch()).triggers == ()
    clock.pass_by(30 * DAY)
    for _ in range(2):
        await areas.agents.rotations.sweep()
    (trigger,) = (await host.fetch()).triggers
    assert (trigger.kind, trigger.users) == (TriggerKind.ROTATE, ("ann", "bob"))
    await rotate_fully(host, "second", "rotation-1")
    await host.report(outcomes=(Outcome(trigger.id, "bob: passwd is locked"),))
    await areas.agents.rotations.sweep()
    assert (await host.fetch()).triggers == ()
    clock.pass_by(3601)
    await areas.agents.rotations.sweep()
    (trigger,) = (await host.fetch()).triggers
    assert trigger.users == ("bob",)


async def test_scheduled_rotation_with_a_broken_machine(areas: Areas, host: Host, clock: SetClock) -> None:
    """A machine whose state cannot be computed does not prevent rotations on other machines.

    If no rotation is due, nothing is written.
    """
    await user(areas, "ann", password=b"first")
    other = await Host.register(areas, "db")
    for each in (host, other):
        await each.assign("ann")
        await each.fetch()
    await areas.agents.change_settings(areas.domain, 0, {"rotateDays": 30})
    policies = Failing(areas.policies)
    states = States(areas.store, areas.vault, policies, clock)
    rotations = Rotations(areas.store, areas.vault, areas.cluster, states, areas.agents.orders, clock)
    before = areas.store.changes
    await rotations.sweep()
    assert areas.store.changes == before
    clock.pass_by(30 * DAY)
    policies.broken = host.id
    await rotations.sweep()
    assert [len(await areas.agents.orders.newest(each.id, 9)) for each in (host, other)] == [0, 1]


@pytest.mark.parametrize("way", ["deleted", "renamed"])
async def test_a_new_user_of_a_former_name(areas: Areas, host: Host, way: str) -> None:
    """A new user gets neither the password nor the takeover of an earlier user with the same name.

    A late confirmation by the agent does not restore them, and other users keep their passwords.
    """
    await host.report(discovery=Discovery(at=1, accounts=(FoundAccount("ann", 1000, 1000),)))
    await areas.agents.take_over(areas.domain, host.id, ["ann"], Action.ADD)
    await user(areas, "bob")
    await host.assign("bob")
    await rotate_fully(host, "of the first ann", "rotation-1")
    await host.rotate(Phase.ESCROW, "bob's", user="bob", number="rotation-3")
    await host.rotate(Phase.CONFIRM, "bob's", user="bob", number="rotation-3")
    await host.rotate(Phase.ESCROW, "in the middle", number="rotation-2")
    state = await host.fetch()
    assert state.takeover == ("ann",)
    bob = await host.user("bob")
    if way == "deleted":
        await areas.remove_user(areas.domain, "ann")
    else:
        ann = await areas.users.load(areas.domain, "ann")
        assert ann is not None
        await areas.accounts.update(areas.domain, ann.id, UserChange("alice"))
        assert (await host.user("alice")).password_hash == NO_PASSWORD
    await user(areas, "ann")
    await host.assign("ann")
    await host.rotate(Phase.CONFIRM, "in the middle", number="rotation-2")
    assert (await host.user("ann")).password_hash == NO_PASSWORD
    assert await host.user("bob") == bob
    assert (await host.fetch()).takeover == ()
    assert await known(areas, host) == [("in the middle", "former"), ("of the first ann", "former")]

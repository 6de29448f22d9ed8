"""Tests of short transactions: large reports, the presence of many agents and many orders are written in slices."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import pytest
import trio

from sallyport.agentwire.fields import MAX_USERS
from sallyport.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, FoundGroup, Outcome, Report
from sallyport.agentwire.state import TriggerKind
from sallyport.areas.agents import repo
from sallyport.areas.agents.orders import MAX_US
from sallyport.areas.agents.reports import MAX_PEOPLE, Reports
from sallyport.areas.agents.states import States
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.areas.users.instances.instance import INACTIVE, Instance, InstanceQuery
from sallyport.base.clock import SECOND
from sallyport.base.errors import NotFound, StoreError
from sallyport.store.model import Store, Tx, Work
from sallyport.store.slices import AT_ONCE
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Host

T = TypeVar("T")
MOST = 2000
"""The maximum number of entries of one kind in a report."""


def discovery(prefix: str, count: int) -> Discovery:
    """Return a report of `count` discovered accounts and groups whose names begin with a prefix."""
    names = [f"{prefix}{number}" for number in range(count)]
    accounts = tuple(FoundAccount(name, 1000 + number, 100) for number, name in enumerate(names))
    return Discovery(1, accounts, tuple(FoundGroup(name, number) for number, name in enumerate(names)))


async def found(areas: Areas, host: Host) -> set[str]:
    """Return the names of the accounts and groups that the service has stored for a machine."""
    pages = [await areas.agents.reports.discovered(host.id, kind, 10_000) for kind in ("account", "group")]
    return {each.name for rows, _ in pages for each in rows}


async def user_names(areas: Areas) -> set[str]:
    """Return the names of the domain's users."""
    rows, _ = await areas.accounts.page(UserQuery(areas.domain, limit=10_000))
    return {row.name for row in rows}


class Failing:
    """A store that raises StoreError after a given number of writes."""

    def __init__(self, store: Store, writes: int) -> None:
        self._store = store
        self._left = writes
        self.read = store.read
        self.search = store.search
        self.submit = store.submit

    @property
    def changes(self) -> int:
        return self._store.changes

    async def write(self, work: Work[T]) -> T:
        """Write, or raise StoreError if the given number of writes has been reached."""
        if self._left == 0:
            raise StoreError("enough writes")
        self._left -= 1
        return await self._store.write(work)


class Interrupted(Failing):
    """A store that lets another task run after a given number of writes, and then continues."""

    def __init__(self, store: Store, writes: int, other: Callable[[], Awaitable[object]]) -> None:
        super().__init__(store, writes)
        self._other = other

    async def write(self, work: Work[T]) -> T:
        if self._left == 0:
            await self._other()
        self._left -= 1
        return await self._store.write(work)


async def test_the_largest_report(areas: Areas, host: Host, clock: SetClock) -> None:
    """Each transaction writes or deletes at most AT_ONCE accounts, groups and deviations of a report."""
    drift = tuple(Drift(kind, f"n{number}") for kind in DriftKind for number in range(MOST // len(DriftKind)))
    for number, (sent, entries) in enumerate(((discovery("a", MOST), 2 * MOST), (discovery("b", 0), 2 * MOST))):
        before = areas.store.changes
        await host.report(f"report-{number:04}", discovery=sent, drift=drift)
        assert areas.store.changes - before >= (entries + len(drift)) / AT_ONCE
        clock.pass_by(1)


async def test_an_interrupted_report(areas: Areas, host: Host, clock: SetClock) -> None:
    """If any transaction of a report fails, the report is not stored and its orders keep waiting.

    If the agent sends the same report again, the rest is stored.
    """
    await host.report(discovery=replace(discovery("old", 30)), drift=(Drift(DriftKind.KEY, "old"),))
    (order,) = await areas.agents.orders.give(areas.domain, [host.id], TriggerKind.SYNC)
    new = (Drift(DriftKind.KEY, "new"), Drift(DriftKind.CLOCK, "new"))
    sent = Report("report-0002", 2, 1, drift=new, outcomes=(Outcome(order.id),), discovery=discovery("new", 20))
    writes = 0
    while True:
        clock.pass_by(1)
        reports = Reports(Failing(areas.store, writes), areas.users, areas.agents.states, clock)
        try:
            assert await reports.take(host.id, sent)
            break
        except StoreError:
            assert (await areas.agents.reports.newest(host.id, 1))[1] == 1
            assert (await areas.agents.orders.newest(host.id, 1))[0].outcome == "waiting"
        writes += 1
    assert writes >= 4
    assert await found(areas, host) == await user_names(areas) == {f"new{number}" for number in range(20)}
    rows, lasting = await areas.agents.reports.drift(areas.domain, host.id, lasting=True, limit=9, offset=0)
    assert ({each.subject for each in rows}, lasting) == ({"new"}, 2)
    assert (await areas.agents.orders.newest(host.id, 1))[0].outcome == "done"
    assert not await areas.agents.reports.take(host.id, sent)


async def test_reports_of_one_machine_do_not_mix(areas: Areas, host: Host) -> None:
    """If two reports arrive at the same time, the service keeps the accounts of one report and does not mix them."""
    count = 2 * AT_ONCE
    async with trio.open_nursery() as nursery:
        for prefix in ("a", "b"):
            report = Report(f"report-{prefix}{prefix}", 1, 1, discovery=discovery(prefix, count))
            nursery.start_soon(areas.agents.reports.take, host.id, report)
    names = await found(areas, host)
    assert len(names) == count
    assert len({name[0] for name in names}) == 1
    assert await user_names(areas) <= names


@pytest.mark.parametrize("writes", [0, 1, 2, 5])
async def test_a_machine_that_is_deleted_meanwhile(areas: Areas, host: Host, clock: SetClock, writes: int) -> None:
    """If the machine is deleted between two transactions, the report raises NotFound and leaves no account and no
    user."""
    store = Interrupted(areas.store, writes, lambda: areas.instances.remove(areas.domain, host.id))
    reports = Reports(store, areas.users, areas.agents.states, clock)
    with pytest.raises(NotFound):
        await reports.take(host.id, Report("report-0001", 1, 1, discovery=discovery("a", 4 * AT_ONCE)))
    assert await found(areas, host) == await user_names(areas) == set()


async def test_repeated_discoveries_make_no_more_users(areas: Areas, host: Host) -> None:
    """A machine creates at most MAX_PEOPLE users, however often the same accounts are reported."""
    for number in range(3):
        await host.report(f"report-{number:04}", discovery=discovery("u", 2 * MAX_PEOPLE + 50))
    assert len(await user_names(areas)) == MAX_PEOPLE


async def add_agents(areas: Areas, count: int) -> list[int]:
    """Add machines with agents in one transaction and return their instance ids."""

    def work(tx: Tx) -> list[int]:
        ids = [areas.instances.add_in(tx, areas.domain, Instance(f"host{number}")) for number in range(count)]
        for each in ids:
            repo.add(tx, areas.domain, each, "", "", areas.clock())
        return ids

    return await areas.store.write(work)


async def test_the_presence_of_many_agents(areas: Areas, clock: SetClock) -> None:
    """Each transaction stores the presence of at most AT_ONCE agents."""
    ids = await add_agents(areas, 2 * AT_ONCE)
    for each in ids:
        await areas.agents.presence.seen(each)
    for seconds in (1, 1000):
        clock.pass_by(seconds)
        before = areas.store.changes
        await areas.agents.presence.sweep()
        assert areas.store.changes - before >= 2
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain, limit=1000))
    assert {row.status for row in rows} == {INACTIVE}


async def test_many_overdue_orders(areas: Areas, clock: SetClock) -> None:
    """Each transaction ends at most AT_ONCE overdue orders."""
    ids = await add_agents(areas, 2 * AT_ONCE)
    await areas.agents.orders.give(areas.domain, ids, TriggerKind.SYNC)
    clock.pass_by(MAX_US / SECOND + 1)
    before = areas.store.changes
    await areas.agents.orders.sweep()
    assert areas.store.changes - before >= 2
    assert await areas.store.read(partial(repo.overdue_orders, before=clock())) == []


class Counting(Failing):
    """A store that counts the statements of each write."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, -1)
        self.most = 0

    async def write(self, work: Work[T]) -> T:

        def counted(tx: Tx) -> T:
            watched = Watched(tx)
            try:
                return work(cast(Tx, watched))
            finally:
                self.most = max(self.most, watched.statements)

        return await super().write(counted)


class Watched:
    """A transaction that counts its statements."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def __getattr__(self, name: str) -> object:
        self.statements += name != "others_wait"
        return getattr(self._tx, name)


async def test_the_state_of_a_machine_with_many_users(areas: Areas, host: Host) -> None:
    """A transaction that computes a state has at most about AT_ONCE statements, both after many users are assigned and
    after they are removed."""
    count = 3 * AT_ONCE
    store = Counting(areas.store)
    states = States(store, areas.vault, areas.policies, areas.clock)

    def assign(tx: Tx) -> None:
        for number in range(count):
            areas.users.add_in(tx, areas.domain, UserChange(f"u{number:04}"), [host.id])

    await areas.store.write(assign)
    first = await states.current(host.id)
    assert (len(first.desired.state.users), len(first.desired.unfit)) == (MAX_USERS, count - MAX_USERS)
    await areas.store.write(lambda tx: tx.execute("delete from endpoint_instance_users"))
    second = await states.current(host.id)
    assert second.desired.state.users == ()
    assert second.version > first.version
    assert 0 < store.most < AT_ONCE + 10

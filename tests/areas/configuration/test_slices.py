"""More than 500 changes: several transactions, of which all take effect or none."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import pytest
import trio
from trio.testing import MockClock

from sallyport.areas.clients.bodies import AddClient
from sallyport.areas.clients.configured import ClientKind
from sallyport.areas.clients.service import NewClient
from sallyport.areas.configuration import repo
from sallyport.areas.configuration.item import Prune
from sallyport.areas.configuration.service import LATE_S, Engine
from sallyport.areas.configuration.transactions import WHOLE
from sallyport.areas.configured import Change
from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.enforcement import Switch
from sallyport.base.errors import Conflict, StoreError
from sallyport.store.model import Tx, Work
from tests.areas import ENGINE, Areas, SetClock, running_engine
from tests.areas.configuration.test_apply import CLIENT, engine_of, export, items, signs
from tests.areas.users.test_cascades import RecordedRevocations
from tests.areas.users.test_totp import enrolled, has_totp
from tests.peers.postgres import database_in

MANY = WHOLE + 10
DOMAIN = ("domain", {"domainName": "corp"})
TAKEN = ("client", {**CLIENT, "name": "taken", "address": "203.0.113.77"})
Folder = list[tuple[str, Mapping[str, object]]]


def clients(note: str = "", first: int = 0, last: int = MANY) -> Folder:
    """Return a folder with many RADIUS clients."""
    return [
        (
            "client",
            {
                **CLIENT,
                "name": f"c{n}",
                "address": f"10.0.{n // 250}.{n % 250}",
                "secret": {"hex": "61" * 16},
                "note": note,
            },
        )
        for n in range(first, last)
    ]


class Stopping(ClientKind):
    """A kind that does something instead of writing its third slice."""

    def __init__(self, own: ClientKind, stop: Callable[[], None]) -> None:
        super().__init__(own._service)
        self._stop = stop
        self._slices = 0

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddClient]]) -> None:
        self._slices += 1
        if self._slices == 3:
            self._stop()
        super().write(tx, tenant_id, changes)


def stopping_engine(areas: Areas, stop: Callable[[], None]) -> Engine:
    """Return an engine that does something in the third slice of RADIUS clients."""
    own = engine_of(areas)
    stopping = [Stopping(each, stop) if isinstance(each, ClientKind) else each for each in own.kinds()]
    return Engine(areas.app.parts.configuration, lambda: stopping, areas.app.parts.vault, areas.clock)


async def begin(areas: Areas, folder: Folder, prune: Prune = Prune.NOTHING) -> list[Work[None]]:
    """Write the first three transactions of an apply, as a process that stops then, and return the others."""
    engine = engine_of(areas)
    plan = await engine.plan(areas.tenant, items(folder), prune=prune)
    parts = [each.write for each in engine.transactions.of(plan, token_hex())]
    for part in parts[:3]:
        await areas.store.write(part)
    return parts[3:]


async def test_a_refused_change_undoes_all_slices(areas: Areas) -> None:
    """If the last object is refused, those of the transactions before are removed again."""
    engine = engine_of(areas)
    other = await areas.tenancy.ensure_tenant(1, 9)
    await engine.run(other, items([("client", {**TAKEN[1], "domains": []})]))
    with pytest.raises(Conflict, match=r"client\.toml: address is not available"):
        await engine.run(areas.tenant, items([*clients(), TAKEN]))
    assert not areas.clients.of_tenant(areas.tenant)
    await areas.app.domains.service.add(areas.tenant, "branch")  # which reads the configuration again
    assert not areas.clients.of_tenant(areas.tenant)
    plan = await engine.run(areas.tenant, items(clients()))
    assert len(plan.changes) == MANY
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY


async def test_changes_and_removals_are_undone(areas: Areas) -> None:
    """After an apply that does not reach its end, changed objects have their former values, removed ones are there
    again, with their secrets, and added ones are not. The next apply finishes."""
    engine = engine_of(areas)
    await engine.run(areas.tenant, items(clients(last=WHOLE - 50)))
    before = await export(areas)
    wanted = items(clients("changed", first=50))
    await begin(areas, clients("changed", first=50), Prune.ALL)
    assert await export(areas) != before
    areas.clock.pass_by(LATE_S + 1)
    await engine.finish_unfinished()
    assert sorted(await export(areas), key=str) == sorted(before, key=str)
    assert {each.secret.octets for each in areas.clients.of_tenant(areas.tenant)} == {b"a" * 16}
    await engine.run(areas.tenant, wanted, prune=Prune.ALL)
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY - 50
    assert await signs(areas, clients("changed", first=50), prune=Prune.ALL) == []


async def test_the_next_apply_undoes_an_unfinished_one(areas: Areas) -> None:
    """An apply begins with what was before an unfinished one."""
    await begin(areas, clients())
    areas.clock.pass_by(LATE_S + 1)  # until then, another node may still be applying
    await engine_of(areas).run(areas.tenant, items(clients(last=5)))
    assert len(areas.clients.of_tenant(areas.tenant)) == 5


USER = ("user", {"domain": "corp", "userName": "Ann"})
"""The endpoint user with a password and a one-time-password seed."""


async def enrolled_user(areas: Areas) -> None:
    """Let files manage an endpoint user with a password and a one-time-password seed."""
    await areas.add_user(areas.domain, "Ann", b"hello")
    await enrolled(areas)
    await engine_of(areas).run(areas.tenant, items([DOMAIN, USER]))


async def test_a_refused_apply_takes_no_factors(areas: Areas) -> None:
    """The files have a RADIUS client whose address another tenant has, and a user no more. The apply is refused, and
    the user keeps password and seed."""
    await enrolled_user(areas)
    other = await areas.tenancy.ensure_tenant(1, 9)
    await engine_of(areas).run(other, items([("client", {**TAKEN[1], "domains": []})]))
    with pytest.raises(Conflict, match="address is not available"):
        await engine_of(areas).run(areas.tenant, items([DOMAIN, TAKEN]), prune=Prune.ALL)
    areas.users.forget()
    assert await has_totp(areas)
    assert not await areas.store.read(repo.is_unfinished)


async def test_an_outdated_apply_takes_no_factors(areas: Areas) -> None:
    """The configuration changes between the plan and the apply that would remove a user. The user keeps password and
    seed, and the next apply removes the user."""
    await enrolled_user(areas)
    plan = await engine_of(areas).plan(areas.tenant, items([DOMAIN]), prune=Prune.ALL)
    await areas.domains.add(areas.tenant, "branch")
    with pytest.raises(repo.Outdated):
        await engine_of(areas).apply(plan)
    areas.users.forget()
    assert await has_totp(areas)
    await engine_of(areas).run(areas.tenant, items([DOMAIN, ("domain", {"domainName": "branch"})]), prune=Prune.ALL)
    areas.users.forget()
    assert await areas.users.load(areas.domain, "ann") is None
    assert not await areas.store.read(repo.is_unfinished)


PEOPLE = [("user", {"domain": "corp", "userName": f"user-{n}"}) for n in range(20)]
LEFT: Folder = [DOMAIN, ("client", CLIENT)]
"""The folder without the users, and with a RADIUS client."""


async def state(areas: Areas) -> tuple[int, int, int]:
    """Return the number of users, of those with a password, and of RADIUS clients in the store."""
    sql = "select count(*) from "
    tables = ("endpoint_users", "endpoint_users where password is not null", "radius_clients")
    return await areas.store.read(lambda tx: tuple(tx.value(int, sql + each) or 0 for each in tables))  # type: ignore[return-value]


async def with_people(areas: Areas) -> None:
    """Let files manage users with passwords, and no RADIUS client."""
    for _, fields in PEOPLE:
        await areas.add_user(areas.domain, str(fields["userName"]), b"hello")
    await engine_of(areas).run(areas.tenant, items([DOMAIN, *PEOPLE]), prune=Prune.ALL)


async def test_no_password_is_lost_wherever_an_apply_stops(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails before the first, the second, and so on, of the writes that add a RADIUS client and remove users
    with passwords. Afterwards, nothing has changed, or all is done."""
    before, after, found = (len(PEOPLE), len(PEOPLE), 0), (0, 0, 1), list[tuple[int, int, int]]()
    write = areas.store.write
    await with_people(areas)
    for most in range(100):
        written = list[object]()

        async def failing(work: Work[object], written: list[object] = written, most: int = most) -> object:
            if len(written) == most:
                raise StoreError("the disk is full")
            result = await write(work)
            written.append(result)
            return result

        with monkeypatch.context() as patch, suppress(StoreError):
            patch.setattr(areas.store, "write", failing)
            await engine_of(areas).run(areas.tenant, items(LEFT), prune=Prune.ALL)
        is_done = len(written) < most
        await engine_of(areas).finish_unfinished(at_once=True)
        found.append(await state(areas))
        assert not await areas.store.read(repo.is_unfinished)
        assert await signs(areas, LEFT, prune=Prune.ALL) == [] or found[-1] == before
        if is_done:
            break
        if found[-1] == after:
            await with_people(areas)
    assert is_done and set(found) == {before, after}
    assert found == sorted(found, reverse=True)


async def test_removed_users_leave_with_the_last_change(areas: Areas) -> None:
    """While users are being removed, no other change takes effect."""
    await with_people(areas)
    engine = engine_of(areas)
    plan = await engine.plan(areas.tenant, items(LEFT), prune=Prune.ALL)
    (decided,) = engine.transactions.of(plan, token_hex())
    await areas.store.write(decided.write)
    assert not decided.ends and await state(areas) == (len(PEOPLE), len(PEOPLE), 1)
    await areas.configuration.restored()  # as after a start, which finds the part
    assert areas.configuration.has_partial
    areas.clock.pass_by(LATE_S + 1)  # until then, another node may still be removing them
    await areas.app.configured.prepare()
    assert await state(areas) == (0, 0, 1)
    sql = "select action from audit_trail where action like 'configuration.%'"
    trail = await areas.store.read(lambda tx: tx.rows(sql))
    assert [str(action) for (action,) in trail] == ["configuration.apply"]


@pytest.mark.parametrize("status", ["Disabled", ""])
async def test_users_of_a_group_lose_their_access(areas: Areas, status: str) -> None:
    """Files that disable or remove a group revoke the access of its users."""
    user = ("user", {"domain": "corp", "userName": "Ann", "groups": ["Staff"]})
    group: dict[str, object] = {"domain": "corp", "groupName": "Staff"}
    await engine_of(areas).run(areas.tenant, items([DOMAIN, user, ("group", group)]))
    losses = areas.users.revocations = RecordedRevocations()
    left: Folder = [user, ("group", {**group, "status": status})] if status else [USER]
    await engine_of(areas).run(areas.tenant, items([DOMAIN, *left]), prune=Prune.ALL)
    assert set(losses.names) == {"Ann"}
    assert await signs(areas, [DOMAIN, *left], prune=Prune.ALL) == []


async def test_a_clock_that_was_set_back_delays_no_start(areas: Areas) -> None:
    """A process stops in the middle of an apply, and the clock is an hour behind at the next start. It undoes the part
    before it answers logins."""
    await begin(areas, clients())
    areas.clock.pass_by(-3600)
    await areas.configuration.restored()
    await areas.app.configured.prepare()
    assert not areas.clients.of_tenant(areas.tenant)
    await engine_of(areas).run(areas.tenant, items(clients(last=3)))
    assert len(areas.clients.of_tenant(areas.tenant)) == 3


async def test_a_command_does_not_wait_for_an_apply(areas: Areas) -> None:
    """Without a service, `sallyport break-glass` has effect in the middle of the apply of a node that has stopped."""
    await begin(areas, clients())
    await areas.configuration.restored()
    await areas.app.configured.prepare()
    await areas.domains.break_glass()
    assert areas.domains.table.present(areas.domain).glass_mode is not None


async def test_changes_that_wait_are_answered(areas: Areas, autojump_clock: MockClock) -> None:
    """An apply does not end within the time for which changes wait for it. Their answers show them."""
    await begin(areas, clients())
    present = await areas.domains.add(areas.tenant, "branch")
    assert (await areas.domains.changed(present)).name == "branch"
    assert present not in areas.domains.table.by_id
    switched = await areas.enforcement.switch(areas.domain, Switch(Mode.ENFORCE, Fallback.DENY))
    assert (switched.domain.mode, areas.domains.table.present(areas.domain).mode) == (Mode.ENFORCE, Mode.MONITOR)
    client_id, _ = await areas.clients.add(areas.tenant, NewClient("beside", "203.0.113.5/32"))
    changed = await areas.clients.update(areas.tenant, client_id, {"note": "new"})
    assert (changed.name, changed.note) == ("beside", "new")
    assert client_id not in areas.clients.table.by_id


async def test_a_restore_undoes_the_part_of_its_backup(areas: Areas, tmp_path: Path) -> None:
    """A backup that was made in the middle of an apply brings back what was before the apply."""
    await begin(areas, clients())
    await areas.copies.backup(tmp_path / "backup.db")
    await areas.copies.restore(tmp_path / "backup.db")
    assert not areas.clients.of_tenant(areas.tenant)
    assert not await areas.store.read(repo.is_unfinished)


async def test_an_undo_that_was_interrupted_is_finished(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails in the middle of an undo. The next undo takes over, and does the rest."""
    await engine_of(areas).run(areas.tenant, items(clients(last=WHOLE - 50)))
    before = await export(areas)
    for part in (await begin(areas, clients("changed", first=150, last=700), Prune.ALL))[:-1]:
        await areas.store.write(part)
    areas.clock.pass_by(LATE_S + 1)
    write, written = areas.store.write, list[None]()

    async def failing(work: Work[None]) -> None:
        if len(written) == 5:
            raise StoreError("the disk is full")
        written.append(await write(work))

    with monkeypatch.context() as patch:
        patch.setattr(areas.store, "write", failing)
        await engine_of(areas).finish_unfinished()
    assert await areas.store.read(repo.is_unfinished)
    areas.clock.pass_by(LATE_S + 1)
    await engine_of(areas).finish_unfinished()
    assert sorted(await export(areas), key=str) == sorted(before, key=str)
    assert not await areas.store.read(repo.is_unfinished)


async def test_a_caller_that_goes_away_undoes_all_slices(areas: Areas) -> None:
    """If the task of an apply is cancelled, nothing of it stays, so that the changes of others need not wait."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        engine = stopping_engine(areas, lambda: token.run_sync_soon(scope.cancel))
        await engine.run(areas.tenant, items(clients()))
    assert scope.cancelled_caught
    assert not await areas.store.read(repo.is_unfinished)
    assert not [each for each in await export(areas) if each[0] == "client"]


async def test_another_change_shows_no_part_of_an_apply(areas: Areas) -> None:
    """The change of another tenant in the middle of an apply is written at once. It takes effect together with the
    whole apply, and returns then."""
    other = await areas.tenancy.ensure_tenant(1, 9)
    left = await begin(areas, clients())
    returned = trio.Event()

    async def add() -> None:
        await areas.client("203.0.113.5/32", name="beside", tenant=other)
        returned.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        while not await areas.store.read(
            lambda tx: tx.value(int, "select 1 from radius_clients where name = 'beside'")
        ):
            await trio.lowlevel.checkpoint()
        for part in left[:-1]:
            assert (areas.clients.of_tenant(other), areas.clients.of_tenant(areas.tenant)) == ((), ())
            await areas.store.write(part)
        assert not returned.is_set()
        await areas.configuration.change(left[-1])
        assert len(areas.clients.of_tenant(areas.tenant)) == MANY
        assert len(areas.clients.of_tenant(other)) == 1


async def test_break_glass_does_not_wait(areas: Areas) -> None:
    """An urgent change takes effect in the middle of an apply, together with the part that is written."""
    left = await begin(areas, clients())
    await areas.domains.break_glass()
    assert areas.domains.table.present(areas.domain).glass_mode is not None
    assert 0 < len(areas.clients.of_tenant(areas.tenant)) < MANY
    for part in left[:-1]:
        await areas.store.write(part)
    await areas.configuration.change(left[-1])
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY


async def test_a_part_that_cannot_be_undone_stays(areas: Areas) -> None:
    """A domain of the former clients is removed while an apply is unfinished. Then its part stays, so that the changes
    of others take effect."""
    lab = await areas.domains.add(areas.tenant, "lab")
    former = [("client", {**fields, "domains": ["corp", "lab"]}) for _, fields in clients(last=60)]
    await engine_of(areas).run(areas.tenant, items(former))
    await begin(areas, clients("changed"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.removal.remove, lab)
        while await areas.store.read(lambda tx: repo.domains(tx, areas.tenant).get(lab)):
            await trio.lowlevel.checkpoint()
        areas.clock.pass_by(LATE_S + 1)
        await engine_of(areas).finish_unfinished()
    assert not await areas.store.read(repo.is_unfinished)
    assert lab not in areas.domains.table.by_id
    assert {client.note for client in areas.clients.of_tenant(areas.tenant)} == {"changed"}


KILLED = """
import signal
import trio
from pathlib import Path
from tests.areas import SetClock, running_areas
from tests.areas.configuration.test_apply import items
from tests.areas.configuration.test_slices import clients, stopping_engine

async def run(directory):
    async with running_areas(directory, SetClock()) as areas:
        kill = lambda: signal.raise_signal(signal.SIGKILL)
        await stopping_engine(areas, kill).run(areas.tenant, items(clients()))

trio.run(run, Path({directory!r}))
"""


async def test_a_killed_process_leaves_nothing_half_on(tmp_path: Path, clock: SetClock) -> None:
    """A process is killed between two transactions. The next one has the configuration of before, also in its store,
    and a second apply writes all."""
    if ENGINE == "postgres":
        database_in(tmp_path)  # of the same server for both processes
    code = KILLED.format(directory=str(tmp_path))
    killed = await trio.run_process([sys.executable, "-c", code], check=False, capture_stderr=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    clock.pass_by(LATE_S + 1)  # until then, another node may still be applying
    async with running_engine(tmp_path) as store:
        areas = Areas(store, clock)
        await areas.app.areas.prepare()
        areas.tenant = await areas.tenancy.ensure_tenant(1, 1)
        assert not areas.clients.of_tenant(areas.tenant)
        assert not [each for each in await export(areas) if each[0] == "client"]
        await engine_of(areas).run(areas.tenant, items(clients()))
        assert len(areas.clients.of_tenant(areas.tenant)) == MANY

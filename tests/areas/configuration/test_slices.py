"""More than 500 changes: several transactions, of which all take effect or none."""

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import trio

from sallyport.areas.clients.bodies import AddClient
from sallyport.areas.clients.configured import ClientKind
from sallyport.areas.configuration.area import LATE_S
from sallyport.areas.configuration.item import Prune
from sallyport.areas.configuration.service import WHOLE, Engine
from sallyport.areas.configured import Change
from sallyport.base.errors import Conflict
from sallyport.store.model import Tx
from tests.areas import ENGINE, Areas, SetClock, running_engine
from tests.areas.configuration.test_apply import CLIENT, engine_of, export, items, signs
from tests.peers.postgres import database_in

MANY = WHOLE + 10
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
    """A kind that stops the process, or raises an error, instead of writing its third slice."""

    def __init__(self, own: ClientKind, *, kills: bool) -> None:
        super().__init__(own._service)
        self._kills = kills
        self._slices = 0

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddClient]]) -> None:
        self._slices += 1
        if self._slices == 3:
            if self._kills:
                signal.raise_signal(signal.SIGKILL)
            raise RuntimeError("stopped")
        super().write(tx, tenant_id, changes)


def stopping_engine(areas: Areas, *, kills: bool) -> Engine:
    """Return an engine that stops in the third slice of RADIUS clients."""
    own = engine_of(areas)
    stopping = [Stopping(each, kills=kills) if isinstance(each, ClientKind) else each for each in own.kinds()]
    return Engine(areas.app.parts.configuration, lambda: stopping, areas.app.parts.vault, areas.clock)


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
    with pytest.raises(RuntimeError):  # it is no refusal, so the engine leaves its slices, as a process that stops
        await stopping_engine(areas, kills=False).run(areas.tenant, wanted, prune=Prune.ALL)
    assert await export(areas) != before
    areas.clock.pass_by(61)
    await engine.undo_unfinished(areas.clock())
    assert sorted(await export(areas), key=str) == sorted(before, key=str)
    assert {each.secret.octets for each in areas.clients.of_tenant(areas.tenant)} == {b"a" * 16}
    await engine.run(areas.tenant, wanted, prune=Prune.ALL)
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY - 50
    assert await signs(areas, clients("changed", first=50), prune=Prune.ALL) == []


async def test_the_next_apply_undoes_an_unfinished_one(areas: Areas) -> None:
    """An apply begins with what was before an unfinished one."""
    with pytest.raises(RuntimeError):
        await stopping_engine(areas, kills=False).run(areas.tenant, items(clients()))
    await engine_of(areas).run(areas.tenant, items(clients(last=5)))
    assert len(areas.clients.of_tenant(areas.tenant)) == 5


KILLED = """
import trio
from pathlib import Path
from tests.areas import SetClock, running_areas
from tests.areas.configuration.test_apply import items
from tests.areas.configuration.test_slices import clients, stopping_engine

async def run(directory):
    async with running_areas(directory, SetClock()) as areas:
        await stopping_engine(areas, kills=True).run(areas.tenant, items(clients()))

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

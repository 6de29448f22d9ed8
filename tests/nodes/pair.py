"""Two nodes that share the prompts of a provider."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from sallyport.nodes.node import DEAD_US
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, keep_files_in
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
    events,
)
from tests.areas.login.second.scripted import NAME, Script, provider
from tests.nodes.conftest import Open, node

TWO_MINUTES = 120.0


@dataclass
class Pair:
    """Two nodes over one database, each with exchanges, that ask the same provider. No node sends heartbeats."""

    one: Wire
    two: Wire
    script: Script

    async def accepts(self) -> int:
        """Return the number of events with an Accept."""
        return [each.applied_decision for each in await events(self.one.areas)].count("accept")

    async def is_approved(self) -> bool:
        """Return whether the store has an approval."""
        sql = "select 1 from prompts where outcome = 'approved'"
        return bool(await self.one.areas.store.read(lambda tx: tx.rows(sql)))

    async def let_go(self) -> None:
        """Let the time pass for which a request that crosses an Accept is dropped."""
        sql = "update prompts set expires_at = now_us() where consumed_by is not null"
        await self.one.areas.store.write(lambda tx: tx.execute(sql))

    async def kill(self, node: str) -> None:
        """Let a node miss its heartbeats."""
        sql = "update nodes set seen_at = seen_at - :dead where name = :name"
        await self.one.areas.store.write(lambda tx: tx.execute(sql, dead=DEAD_US, name=node))


@pytest.fixture
async def pair(tmp_path: Path, opened: Open) -> AsyncIterator[Pair]:
    """Yield two nodes with the user ann. The clock of the second is two minutes ahead."""
    script, clocks = Script(), (SetClock(), SetClock())
    clocks[1].pass_by(TWO_MINUTES)
    async with opened("one") as first, opened("two") as second, trio.open_nursery() as nursery:
        one, two = (_areas(*each, tmp_path) for each in ((first, clocks[0], "one"), (second, clocks[1], "two")))
        two.kinds[NAME] = provider(script)
        await one.prepare()
        await script.attach(one)
        await one.add_user(one.domain, "ann", b"hello")
        await one.client(name="nas")
        await two.configuration.reload()
        two.tenant, two.domain = one.tenant, one.domain
        for areas in (one, two):
            await areas.cluster.join()
            await nursery.start(areas.second.run)
        async with trio.open_nursery() as first_wire, trio.open_nursery() as second_wire:
            yield Pair(Wire(one, first_wire), Wire(two, second_wire), script)
            for each in (first_wire, second_wire, nursery):
                each.cancel_scope.cancel()


def _areas(store: PostgresStore, clock: SetClock, name: str, directory: Path) -> Areas:
    keep_files_in(store, directory)
    return Areas(store, clock, cluster=node(store, name))

"""What happens in the middle of an apply of several transactions: a defect, a rotation of the master key, the removal
of a domain, and the change of another tenant."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from sallyport.areas.clients.configured import ClientKind
from sallyport.areas.configuration import repo
from sallyport.areas.configuration.item import Prune
from sallyport.areas.configuration.service import LATE_S, Engine
from sallyport.areas.configured import AnyKind
from sallyport.areas.domains.configured import DomainKind
from sallyport.base.errors import Conflict
from sallyport.store.vault import Vault, load_master_keys
from tests.areas import Areas
from tests.areas.configuration.test_apply import engine_of, export, items, signs
from tests.areas.configuration.test_slices import DOMAIN, MANY, begin, clients, state, with_people
from tests.store.test_rotation import kept_keys, rotation_of

SLICES = 3
"""The number of writes after which something happens."""


def in_the_middle(areas: Areas, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Awaitable[object]]) -> None:
    """Do something once, after SLICES writes."""
    write, written = areas.store.write, list[object]()

    async def counting(each: object) -> object:
        written.append(each)
        if len(written) == SLICES:
            await work()
        return await write(each)  # type: ignore[arg-type]

    monkeypatch.setattr(areas.store, "write", counting)


class BrokenClients(ClientKind):
    """A kind that fails when its changes are committed. reactions: the names of kinds that have failed."""

    def __init__(self, own: ClientKind, reactions: list[str]) -> None:
        super().__init__(own._service)
        self._reactions = reactions

    def written(self) -> None:
        self._reactions.append(self.name)
        raise ZeroDivisionError


class BrokenDomains(DomainKind):
    """A second kind that fails."""

    def __init__(self, own: DomainKind, reactions: list[str]) -> None:
        super().__init__(own._service, own._removal)
        self._reactions = reactions

    def written(self) -> None:
        self._reactions.append(self.name)
        raise ZeroDivisionError


def broken_engine(areas: Areas, reactions: list[str]) -> Engine:
    """Return an engine with kinds that fail."""

    def broken(kind: AnyKind) -> AnyKind:
        if isinstance(kind, ClientKind):
            return BrokenClients(kind, reactions)
        return BrokenDomains(kind, reactions) if isinstance(kind, DomainKind) else kind

    kinds = [broken(each) for each in engine_of(areas).kinds()]
    return Engine(areas.app.parts.configuration, lambda: kinds, areas.app.parts.vault, areas.clock)


@pytest.mark.parametrize("count", [3, MANY])
async def test_a_defect_after_the_end_stops_no_other_kind(areas: Areas, count: int) -> None:
    """Two kinds fail after the last transaction. The caller learns it, each has reacted, the changes are in effect, and
    no part is left that holds changes of others back."""
    reactions, folder = list[str](), [DOMAIN, ("domain", {"domainName": "lab"}), *clients(last=count)]
    with pytest.raises(ZeroDivisionError):
        await broken_engine(areas, reactions).run(areas.tenant, items(folder))
    assert len(areas.clients.of_tenant(areas.tenant)) == count and {*reactions} == {"client", "domain"}
    assert not await areas.store.read(repo.is_unfinished)
    assert await signs(areas, folder) == []


async def test_a_defect_does_not_stop_removals(areas: Areas) -> None:
    """One kind fails after the last other change. The users that files have no more are removed all the same."""
    await with_people(areas)
    with pytest.raises(ZeroDivisionError):
        await broken_engine(areas, []).run(areas.tenant, items([DOMAIN, *clients(last=2)]), prune=Prune.ALL)
    assert await state(areas) == (0, 0, 2)
    assert not await areas.store.read(repo.is_unfinished)


async def test_an_undo_after_a_rotation(areas: Areas, tmp_path: Path) -> None:
    """The master key is rotated in the middle of an apply, which writes on, and then the process stops. The next one
    has the new key alone, and restores the former secrets."""
    vault = areas.app.parts.vault
    kept_keys(areas, tmp_path)
    await engine_of(areas).run(areas.tenant, items(clients(last=MANY - 1)))
    before = await export(areas)
    left = await begin(areas, clients("changed"))
    await rotation_of(areas, vault).rotate()
    for part in left[:-1]:
        await areas.store.write(part)
    started = Vault(load_master_keys(tmp_path, {}, may_make=False))
    assert len(started.versions) == 1
    areas.clock.pass_by(LATE_S + 1)
    kinds = engine_of(areas).kinds()
    await Engine(areas.app.parts.configuration, lambda: kinds, started, areas.clock).finish_unfinished()
    assert sorted(await export(areas), key=str) == sorted(before, key=str)
    assert {each.secret.octets for each in areas.clients.of_tenant(areas.tenant)} == {b"a" * 16}


async def test_a_domain_that_is_removed_meanwhile(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain of the new clients is removed in the middle. The apply is refused and undone, and the next one, whose
    files do not have the domain, is applied."""
    lab = await areas.domains.add(areas.tenant, "lab")
    folder = [("client", {**fields, "domains": ["corp", "lab"]}) for _, fields in clients()]
    in_the_middle(areas, monkeypatch, lambda: areas.configuration.store.write(lambda tx: areas.removal.mark(tx, lab)))
    with pytest.raises(Conflict, match="no domain lab any more"):
        await engine_of(areas).run(areas.tenant, items(folder))
    assert not await areas.store.read(repo.is_unfinished)
    assert not [each for each in await export(areas) if each[0] == "client"]
    await engine_of(areas).run(areas.tenant, items(clients()))
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY


async def test_another_tenant_waits_for_one_apply(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant applies again and again. The change of another tenant, which begins in the middle of the first apply,
    takes effect with the end of that apply, not after all of them."""
    other, finished, seen = await areas.tenancy.ensure_tenant(1, 9), list[str](), list[int]()
    await areas.configuration.reload()

    async def beside() -> None:
        await areas.client("203.0.113.5/32", name="beside", tenant=other)
        seen.append(len(finished))

    async with trio.open_nursery() as nursery:

        async def begin_beside() -> None:
            nursery.start_soon(beside)
            sql = "select 1 from radius_clients where name = 'beside'"
            while not await areas.store.read(lambda tx: tx.value(int, sql)):
                await trio.lowlevel.checkpoint()

        async def apply(note: str) -> None:
            await engine_of(areas).run(areas.tenant, items(clients(note)))
            finished.append(note)

        in_the_middle(areas, monkeypatch, begin_beside)
        for note in ("one", "two", "three", "four"):
            nursery.start_soon(apply, note)
    assert len(finished) == 4 and seen[0] <= 1

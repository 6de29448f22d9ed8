"""A made-up area: one folder, and one entry in the list of areas. Its operation, command, pages, table and periodic
tasks follow, and so do its reactions to changes of other nodes and to a restore."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from sallyport.areas.entrance import Area, Parts
from sallyport.base.wire import JSON
from sallyport.service.commands import commands
from sallyport.shell.command import Arguments, Command, command
from sallyport.store.erasure import Rows
from sallyport.store.foreign import ForeignChange
from sallyport.store.model import Tx
from sallyport.store.schema import PACKAGE, step_files
from sallyport.web.bodies import Scoped
from sallyport.web.console_pages import Context, Pages, Visit
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate, Role
from tests.areas import Areas, SetClock, running_engine
from tests.console.visitor import site_of, text_of

STEP = """create table shelves (id {id}, domain_id bigint not null references domains (id), label text not null);
create index shelves_domain on shelves (domain_id);
"""
PAGE = """{% extends "base.html" %}{% block content %}<p>{{ count }} shelves</p>{% endblock %}"""


def folder_in(directory: Path) -> Path:
    """Return the folder of the area, with a step of the schema."""
    step = directory / "shelves" / "schema" / "9000_shelves.sql"
    step.parent.mkdir(parents=True)
    step.write_text(STEP, encoding="utf-8")
    return directory / "shelves"


def pages_of(templates: Path) -> Pages[Visit]:
    """Return a page of the console. templates: the folder of the area's templates."""
    templates.mkdir(exist_ok=True)
    (templates / "shelves.html").write_text(PAGE, encoding="utf-8")
    pages = Pages[Visit](templates)

    @pages.show("/shelves", "Shelves", roles=READERS, template="shelves.html", menu="Network")
    async def shelves(visit: Visit) -> Context:
        return {"count": (await visit.call("/shelf/Count"))["message"]}

    return pages


class ShelvesArea(Area):
    """Shelves. done: what the service has asked the area to do."""

    erased_rows = (Rows("shelves", "shelves"),)

    def __init__(self, parts: Parts) -> None:
        self.done: list[str] = []
        self.node_tasks = (self._dust,)
        self.leader_tasks = (self._count,)
        self.pages = (pages_of(parts.settings.data_dir / "templates"),)
        self.foreign = {"shelves": lambda domain_id: self.done.append(f"changed in {domain_id}")}
        self._node, self._store = parts.settings.node, parts.store

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operation /shelf/Count."""
        shelves = Operations("Shelves", gate)

        @shelves.post("/shelf/Count", roles=READERS)
        async def count_shelves(body: Scoped, caller: Caller) -> str:
            """Return the number of shelves."""
            return str(await self._store.read(lambda tx: tx.value(int, "select count(*) from shelves")))

        return [shelves]

    def commands(self) -> Mapping[str, Command]:
        """Return the command shelf.node."""

        async def node(_: Arguments) -> JSON:
            return self._node

        return {"shelf.node": command(Arguments, node)}

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the page /shelf."""

        async def page(_: Request) -> Response:
            return PlainTextResponse("a shelf")

        return [Route("/shelf", page)]

    async def prepare(self) -> None:
        """Note the call."""
        self.done.append("prepared")

    def forget(self) -> None:
        """Note the call."""
        self.done.append("forgot")

    def void(self, tx: Tx, at: int) -> None:
        """Note the call."""
        self.done.append("void")

    def revoke(self, tx: Tx, at: int) -> None:
        """Note the call."""
        self.done.append("revoked")

    async def restored(self) -> None:
        """Note the call."""
        self.done.append("restored")

    async def completed(self) -> None:
        """Write, and note the call."""
        await self._store.write(lambda tx: tx.value(int, "select count(*) from tenants"))
        self.done.append("completed")

    async def _dust(self) -> None: ...

    async def _count(self) -> None: ...


class OtherShelvesArea(ShelvesArea):
    """An area with the command of the first one, and without its reactions."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.foreign = {}


async def test_a_new_area_is_one_entry(tmp_path: Path, clock: SetClock) -> None:
    """The API, the control socket, the pages and the periodic tasks have what the area declares."""
    async with running_engine(tmp_path, [folder_in(tmp_path)]) as store:
        areas = Areas(store, clock, further=[ShelvesArea])
        await areas.prepare()
        (shelves,) = [each for each in areas.app.areas if isinstance(each, ShelvesArea)]
        await store.write(lambda tx: tx.insert("shelves", ("domain_id", "label"), [(areas.domain, "top")]))
        site = site_of(areas, clock)
        (operation,) = [each for group in site.declared for each in group.all if each.paths == ("/shelf/Count",)]
        assert operation.run is not None
        caller = Caller(0, 1, 1, areas.tenant, Role.AUDITOR, "ann", is_installation=False)
        assert await operation.run(b'{"orgId": 1, "tenantId": 1}', caller) == b'"1"'
        assert await commands(areas.app).ready("shelf.node", {})() == areas.settings.node
        async with site.visitor() as visitor:
            assert (await visitor.get("/shelf")).text == "a shelf"
            await visitor.sign_in(await site.token(Role.AUDITOR))
            page = text_of(await visitor.get("/shelves"))
            assert "1 shelves" in page and "Shelves" in page
        assert shelves.node_tasks[0] in areas.app.areas.node_tasks
        assert shelves.leader_tasks[0] in areas.app.areas.leader_tasks
        await areas.app.areas.prepare()
        areas.app.follower.changed(ForeignChange("shelves", 7))
        assert shelves.done == ["prepared", "changed in 7"]
        assert (await areas.removal.preview(areas.domain))[1] == [("shelves", 1)]


async def test_a_new_area_is_restored(tmp_path: Path, clock: SetClock) -> None:
    """The area takes part in a restore: it makes codes invalid, revokes tokens on request, loads its data again, and
    then writes."""
    async with running_engine(tmp_path) as store:
        areas = Areas(store, clock, further=[ShelvesArea])
        await areas.prepare()
        (shelves,) = [each for each in areas.app.areas if isinstance(each, ShelvesArea)]
        backup = tmp_path / "backup.db"
        await areas.copies.backup(backup)
        await areas.copies.restore(backup)
        assert [each for each in shelves.done if each != "forgot"] == ["void", "restored", "completed"]
        shelves.done.clear()
        await areas.copies.restore(backup, revoke_tokens=True)
        assert [each for each in shelves.done if each != "forgot"] == ["void", "revoked", "restored", "completed"]


async def test_two_areas_have_no_common_command(tmp_path: Path, clock: SetClock) -> None:
    """If two areas declare the same command, the service does not start."""
    async with running_engine(tmp_path) as store:
        areas = Areas(store, clock, further=[ShelvesArea, OtherShelvesArea])
        with pytest.raises(ValueError, match=r"shelf\.node"):
            commands(areas.app)


async def test_two_areas_react_to_no_common_change(tmp_path: Path, clock: SetClock) -> None:
    """If two areas react to the same kind of change, the service does not start. One of them would miss the change."""
    async with running_engine(tmp_path) as store:
        with pytest.raises(ValueError, match="the change shelves"):
            Areas(store, clock, further=[ShelvesArea, ShelvesArea])


NAMES = {
    "m": (
        "0002_signin", "0003_identities", "0004_login_steps", "0005_request_list", "0006_login_attributes",
        "0007_answers_by_id", "0008_did_kinds", "0009_domain_realms", "0010_network_bits", "0011_references",
        "0012_group_keys", "0013_learned_values", "0014_mac_forms", "0015_bounded_writes", "0016_sign_in_attempts",
    ),
    "p": (
        "0002_signin", "0003_identities", "0004_login_steps", "0005_node_senders", "0006_request_list",
        "0007_console_answers", "0008_login_attributes", "0009_answers_by_id", "0010_did_kinds", "0011_domain_realms",
        "0012_network_bits", "0013_references", "0014_group_keys", "0015_learned_values", "0016_mac_forms",
        "0017_bounded_writes", "0018_sign_in_attempts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("letter", NAMES)
def test_a_step_of_the_schema_keeps_its_name(letter: str, tmp_path: Path) -> None:
    """Databases store the names, so a further step with a smaller number changes none of them."""
    shelves = folder_in(tmp_path)
    (shelves / "schema" / "8000_earlier.sql").write_text(STEP, encoding="utf-8")
    names = [step.name for step in step_files(letter, (PACKAGE, tmp_path), has_nodes=letter == "p")]
    assert names[: len(NAMES[letter])] == [letter + name for name in NAMES[letter]]
    assert names[-2:] == [f"{letter}8000_earlier", f"{letter}9000_shelves"]


def test_two_steps_of_the_schema_have_no_common_number(tmp_path: Path) -> None:
    """If two areas add a step with the same number, the service does not start: the order of the steps is unknown."""
    folders = [folder_in(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(ValueError, match="two steps of the schema have the number 9000"):
        step_files("m", folders, has_nodes=False)

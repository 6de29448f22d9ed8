"""One reading from end to end, and the loop around it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from sallyport.agent import file
from sallyport.agent.directory.agent import DirectoryAgent, StateFile
from sallyport.agent.directory.settings import settings_of
from sallyport.agent.keys import KeyRing
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import ServiceAway, ServiceRefused
from sallyport.base.notify import Notifier
from sallyport.directory.entry import Group
from sallyport.directory.reading import ReadError
from tests.agent.directory.fakes import Keeper, ListReader, person

START = 1_767_225_600 * SECOND
TEXT = f"""\
service = "https://sallyport.example"
key = "spk_own"
renew_at = "{iso(START + 10**15)}"
[directory]
domain = 7
name = "hq"
servers = ["ldaps://dc1.example"]
base_dn = "dc=x"
"""


@dataclass
class Desk:
    """An agent with its directory, its service and its state."""

    tmp_path: Path
    reader: ListReader
    service: Keeper
    now: int = START
    agent: DirectoryAgent = field(init=False)

    def __post_init__(self) -> None:
        path = self.tmp_path / "agent.toml"
        path.write_text(TEXT)
        path.chmod(0o600)
        self.begin()

    def begin(self) -> None:
        """A process that has just begun."""
        path = self.tmp_path / "agent.toml"
        self.agent = DirectoryAgent(
            settings_of(file.read(path, "directory")),
            self.reader,
            self.service,
            KeyRing(path, "directory", self.service, clock=lambda: self.now),
            StateFile(self.tmp_path / "state.json"),
            lambda: self.now,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An agent of a directory of 1,203 people."""
    return Desk(tmp_path, ListReader([person(number) for number in range(1203)]), Keeper())


class Enough(Exception):
    """The loop is to end."""


def once(raised: Exception, operation: str, sequence: int | None = None) -> Callable[[str, Mapping[str, Any]], None]:
    """A step of the service that fails one time."""
    left = [raised]

    def step(name: str, body: Mapping[str, Any]) -> None:
        if left and name == operation and sequence in (None, body.get("sequence")):
            raise left.pop()

    return step


async def test_a_run(desk: Desk) -> None:
    """Every entry is sent once, in full batches; a complete run is marked as such, and the next run has changes."""
    told = await desk.agent.once()
    assert (told.full, told.counts, told.job) == (True, {"person": 1203}, 1)
    ((entries, complete),) = desk.service.applied
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert complete
    assert desk.service.sizes == [500, 500, 203]
    assert not (await desk.agent.once()).full
    assert desk.reader.asked == [("", True), ("place 1", False)]


async def test_everything_is_told_now_and_then(desk: Desk) -> None:
    """After a day; at once where the service has nothing, the state is lost, or the clock was set back."""

    async def is_full() -> bool:
        desk.begin()
        return (await desk.agent.once()).full

    assert [await is_full(), await is_full()] == [True, False]
    desk.now += 25 * 3600 * SECOND
    assert [await is_full(), await is_full()] == [True, False]
    desk.service.cursor = ""
    assert [await is_full(), await is_full()] == [True, False]
    (desk.tmp_path / "state.json").write_text("{")
    assert [await is_full(), await is_full()] == [True, False]
    desk.now -= 3600 * SECOND
    assert [await is_full(), await is_full()] == [True, False]
    assert (await desk.agent.once(full=True)).full


async def test_the_service_may_take_its_time(desk: Desk) -> None:
    """While it may still apply a run, no other is sent; after half an hour one is, since it may have failed."""
    desk.service.applies = False
    await desk.agent.once(patient=True)
    for _ in range(2):
        desk.begin()
        with pytest.raises(ServiceAway, match="not applied"):
            await desk.agent.once(patient=True)
    assert len(desk.service.applied) == 1
    await desk.agent.once()
    desk.now += 1801 * SECOND
    await desk.agent.once(patient=True)
    desk.service.cursor = "place 3"
    await desk.agent.once(patient=True)
    assert len(desk.service.applied) == 4


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(("operation", "sequence"), [("begin", None), ("batch", 1), ("batch", 2), ("finish", None)])
async def test_an_answer_that_is_lost(
    desk: Desk, autojump_clock: trio.testing.MockClock, where: str, operation: str, sequence: int | None
) -> None:
    """Asked again after a while, and no entry is there twice."""
    setattr(desk.service, where, once(ServiceAway("away"), operation, sequence))
    await desk.agent.once()
    entries, complete = desk.service.applied[-1]
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert complete


async def test_a_service_that_stays_away(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    """A run is abandoned after some minutes; nothing of it is applied, and the next one starts again."""

    def away(operation: str, body: Mapping[str, Any]) -> None:
        if operation == "batch" and body["sequence"] > 2:
            raise ServiceAway("away")

    desk.service.before = away
    began = trio.current_time()
    with pytest.raises(ServiceAway):
        await desk.agent.once()
    assert 100 < trio.current_time() - began < 600
    assert desk.service.applied == []
    desk.service.before = lambda operation, body: None
    assert (await desk.agent.once()).full
    assert len(desk.service.applied) == 1


async def test_a_service_that_is_busy_with_the_same_batch(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    """A conflict is asked again; any other refusal ends the run."""
    desk.service.before = once(ServiceRefused("another request of this run is not answered yet", 409), "batch", 2)
    await desk.agent.once()
    desk.service.before = once(ServiceRefused("invalid token", 401), "batch", 2)
    with pytest.raises(ServiceRefused, match="invalid token"):
        await desk.agent.once()
    assert len(desk.service.applied) == 1


async def test_a_directory_that_breaks_off(desk: Desk) -> None:
    """Nothing of the run counts."""
    desk.reader.breaks = ReadError("it closed the connection")
    with pytest.raises(ReadError, match="closed"):
        await desk.agent.once()
    assert desk.service.applied == []


async def test_an_entry_that_is_not_taken(desk: Desk) -> None:
    """An entry that the service refuses is sent as one that cannot be used; all others are accepted."""
    desk.service.takes = lambda entry: entry["externalId"] != "id777" or entry["kind"] == "problem"
    told = await desk.agent.once()
    assert told.counts["refused"] == 1
    ((entries, complete),) = desk.service.applied
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert entries[777] == {
        "kind": "problem", "message": "invalid dn", "externalId": "id777", "dn": "uid=u777,dc=x",
    }  # fmt: skip
    assert complete


async def test_an_entry_of_which_nobody_can_be_told(desk: Desk) -> None:
    """A run with an entry that could not be reported is not complete, so that no entry is removed."""
    desk.service.takes = lambda entry: entry["externalId"] != "id777"
    await desk.agent.once()
    ((entries, complete),) = desk.service.applied
    assert len(entries) == 1202
    assert not complete


async def test_a_large_group_that_is_not_taken(desk: Desk) -> None:
    """Its other members do not go to the group before it."""
    members = tuple(f"uid=u{number},dc=x" for number in range(1200))
    good, bad = Group("g1", "cn=good,dc=x", "good", members), Group("g2", "cn=bad,dc=x", "bad", members)
    desk.reader.entries = [good, bad, person(1)]
    desk.service.takes = lambda entry: entry["externalId"] != "g2" or entry["kind"] == "problem" or entry["continued"]
    await desk.agent.once()
    ((entries, _),) = desk.service.applied
    assert [(entry["kind"], entry["externalId"]) for entry in entries] == [
        ("group", "g1"), ("group", "g1"), ("group", "g1"), ("problem", "g2"), ("person", "id1"),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", [{}, {"runId": "1", "sequence": 1}, {"runId": True, "sequence": 1, "cursor": ""}])
async def test_rubbish(desk: Desk, autojump_clock: trio.testing.MockClock, answer: dict[str, object]) -> None:
    """What answers and is not the service is as good as away."""

    class Rubbish(Keeper):
        def post(self, *args: object, **options: object) -> dict[str, object]:
            return answer

    desk.service = Rubbish()
    desk.begin()
    with pytest.raises(ServiceAway, match="not from the service"):
        await desk.agent.once()


async def test_a_dry_run_tells_what_would_be_sent(desk: Desk) -> None:
    """Every entry in a line; the service is not asked."""
    lines: list[str] = []
    await desk.agent.dry_run(lines.append)
    assert [json.loads(line)["externalId"] for line in lines] == [f"id{number}" for number in range(1203)]
    assert desk.service.run == 0
    await desk.agent.once()
    await desk.agent.dry_run(lines.append)
    await desk.agent.dry_run(lines.append, full=True)
    assert desk.reader.asked[-2:] == [("place 2", False), ("place 2", True)]


async def test_the_loop(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    """Run after run; after a failure sooner than else, and an admin's new key is seen."""
    times: list[float] = []
    failures: list[Exception] = [ServiceRefused("invalid token", 401), ServiceRefused("no", 403)]

    def step(operation: str, body: Mapping[str, Any]) -> None:
        if operation == "begin":
            times.append(autojump_clock.current_time())
            if len(times) > 1 and failures:
                raise failures.pop()
            if len(times) == 6:
                raise Enough

    desk.service.before = step
    with pytest.raises(Enough):
        await desk.agent.run(Notifier({}))
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert [260 < wait < 340 for wait in waits] == [True, False, False, True, True]
    assert waits[1] < waits[2] < 20
    assert len(desk.service.applied) == 3


def test_a_state_is_found_again(tmp_path: Path) -> None:
    """A saved state is loaded again; its directory is created with mode 0700."""
    state = StateFile(tmp_path / "made" / "state.json")
    assert state.load() == {}
    for value in ({"cursor": "ä"}, {"cursor": None}):
        state.save(value)
        assert StateFile(tmp_path / "made" / "state.json").load() == value
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_state_that_is_none(tmp_path: Path, content: bytes) -> None:
    """It is as if nothing had been saved, and can be saved again."""
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert StateFile(path).load() == {}
    StateFile(path).save({"a": 1})
    assert StateFile(path).load() == {"a": 1}

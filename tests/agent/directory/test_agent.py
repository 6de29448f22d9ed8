"""Runs of the directory agent from end to end, and its loop."""

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
from sallyport.areas.directory.entry.entry import Group
from sallyport.areas.directory.reading import ReadError
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import ServiceAway, ServiceRefused
from sallyport.host.notify import Notifier
from tests.agent.directory.fakes import ListReader, RunService, person

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
class Setup:
    """An agent with its directory, its service and its state file."""

    tmp_path: Path
    reader: ListReader
    service: RunService
    now: int = START
    agent: DirectoryAgent = field(init=False)

    def __post_init__(self) -> None:
        path = self.tmp_path / "agent.toml"
        path.write_text(TEXT)
        path.chmod(0o600)
        self.begin()

    def begin(self) -> None:
        """Start the agent again as a new process."""
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
def setup(tmp_path: Path) -> Setup:
    """Return an agent of a directory of 1,203 people."""
    return Setup(tmp_path, ListReader([person(number) for number in range(1203)]), RunService())


class Enough(Exception):
    """The signal by which a test ends the loop."""


def once(raised: Exception, operation: str, sequence: int | None = None) -> Callable[[str, Mapping[str, Any]], None]:
    """Return a step of the service that fails once."""
    left = [raised]

    def step(name: str, body: Mapping[str, Any]) -> None:
        if left and name == operation and sequence in (None, body.get("sequence")):
            raise left.pop()

    return step


async def test_a_run_sends_each_entry_once(setup: Setup) -> None:
    """Every entry is sent once, in full batches. A complete run is marked as complete, and the next run reads only
    changes.
    """
    reading = await setup.agent.once()
    assert (reading.full, reading.counts, reading.job) == (True, {"person": 1203}, 1)
    ((entries, complete),) = setup.service.applied
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert complete
    assert setup.service.sizes == [500, 500, 203]
    assert not (await setup.agent.once()).full
    assert setup.reader.asked == [("", True), ("place 1", False)]


async def test_full_runs(setup: Setup) -> None:
    """A run is full if the last full one is a day old, the service has no cursor, the state is lost, or the clock was
    set back.
    """

    async def is_full() -> bool:
        setup.begin()
        return (await setup.agent.once()).full

    assert [await is_full(), await is_full()] == [True, False]
    setup.now += 25 * 3600 * SECOND
    assert [await is_full(), await is_full()] == [True, False]
    setup.service.cursor = ""
    assert [await is_full(), await is_full()] == [True, False]
    (setup.tmp_path / "state.json").write_text("{")
    assert [await is_full(), await is_full()] == [True, False]
    setup.now -= 3600 * SECOND
    assert [await is_full(), await is_full()] == [True, False]
    assert (await setup.agent.once(full=True)).full


async def test_a_slow_service(setup: Setup) -> None:
    """While the service may still apply a run, the agent sends no other run.

    After half an hour the run counts as failed, and the agent sends the next one.
    """
    setup.service.applies = False
    await setup.agent.once(patient=True)
    for _ in range(2):
        setup.begin()
        with pytest.raises(ServiceAway, match="not applied"):
            await setup.agent.once(patient=True)
    assert len(setup.service.applied) == 1
    await setup.agent.once()
    setup.now += 1801 * SECOND
    await setup.agent.once(patient=True)
    setup.service.cursor = "place 3"
    await setup.agent.once(patient=True)
    assert len(setup.service.applied) == 4


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(("operation", "sequence"), [("begin", None), ("batch", 1), ("batch", 2), ("finish", None)])
async def test_a_lost_answer(
    setup: Setup, autojump_clock: trio.testing.MockClock, where: str, operation: str, sequence: int | None
) -> None:
    """A request whose answer is lost is sent again, and no entry is stored twice."""
    setattr(setup.service, where, once(ServiceAway("away"), operation, sequence))
    await setup.agent.once()
    entries, complete = setup.service.applied[-1]
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert complete


async def test_an_unreachable_service(setup: Setup, autojump_clock: trio.testing.MockClock) -> None:
    """If the service stays unreachable for some minutes, the agent abandons the run, and the service does not apply it.

    The next run starts again.
    """

    def unreachable(operation: str, body: Mapping[str, Any]) -> None:
        if operation == "batch" and body["sequence"] > 2:
            raise ServiceAway("away")

    setup.service.before = unreachable
    began = trio.current_time()
    with pytest.raises(ServiceAway):
        await setup.agent.once()
    assert 100 < trio.current_time() - began < 600
    assert setup.service.applied == []
    setup.service.before = lambda operation, body: None
    assert (await setup.agent.once()).full
    assert len(setup.service.applied) == 1


async def test_a_service_that_is_busy_with_the_same_batch(setup: Setup, autojump_clock: trio.testing.MockClock) -> None:
    """A conflict is retried. Any other refusal ends the run."""
    setup.service.before = once(ServiceRefused("another request of this run is not answered yet", 409), "batch", 2)
    await setup.agent.once()
    setup.service.before = once(ServiceRefused("invalid token", 401), "batch", 2)
    with pytest.raises(ServiceRefused, match="invalid token"):
        await setup.agent.once()
    assert len(setup.service.applied) == 1


async def test_a_directory_that_breaks_off(setup: Setup) -> None:
    """If the directory fails during a read, the service applies nothing of the run."""
    setup.reader.breaks = ReadError("the server closed the connection")
    with pytest.raises(ReadError, match="closed"):
        await setup.agent.once()
    assert setup.service.applied == []


async def test_a_refused_entry(setup: Setup) -> None:
    """An entry that the service refuses is sent again as an unusable entry. All other entries are accepted."""
    setup.service.takes = lambda entry: entry["externalId"] != "id777" or entry["kind"] == "problem"
    reading = await setup.agent.once()
    assert reading.counts["refused"] == 1
    ((entries, complete),) = setup.service.applied
    assert [entry["externalId"] for entry in entries] == [f"id{number}" for number in range(1203)]
    assert entries[777] == {
        "kind": "problem", "message": "invalid dn", "externalId": "id777", "dn": "uid=u777,dc=x",
    }  # fmt: skip
    assert complete


async def test_a_refused_entry_that_cannot_be_reported(setup: Setup) -> None:
    """A run is not complete if one of its entries could not be reported, so the service removes no entry."""
    setup.service.takes = lambda entry: entry["externalId"] != "id777"
    await setup.agent.once()
    ((entries, complete),) = setup.service.applied
    assert len(entries) == 1202
    assert not complete


async def test_a_large_refused_group(setup: Setup) -> None:
    """The remaining members of a refused group are not added to the group before it."""
    members = tuple(f"uid=u{number},dc=x" for number in range(1200))
    good, bad = Group("g1", "cn=good,dc=x", "good", members), Group("g2", "cn=bad,dc=x", "bad", members)
    setup.reader.entries = [good, bad, person(1)]
    setup.service.takes = lambda entry: entry["externalId"] != "g2" or entry["kind"] == "problem" or entry["continued"]
    await setup.agent.once()
    ((entries, _),) = setup.service.applied
    assert [(entry["kind"], entry["externalId"]) for entry in entries] == [
        ("group", "g1"), ("group", "g1"), ("group", "g1"), ("problem", "g2"), ("person", "id1"),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", [{}, {"runId": "1", "sequence": 1}, {"runId": True, "sequence": 1, "cursor": ""}])
async def test_an_answer_of_another_server(
    setup: Setup, autojump_clock: trio.testing.MockClock, answer: dict[str, object]
) -> None:
    """An answer that comes from another server counts as an unreachable service."""

    class Rubbish(RunService):
        def post(self, *args: object, **options: object) -> dict[str, object]:
            return answer

    setup.service = Rubbish()
    setup.begin()
    with pytest.raises(ServiceAway, match="not from the service"):
        await setup.agent.once()


async def test_a_dry_run(setup: Setup) -> None:
    """A dry run prints one entry on each line and sends no request."""
    lines: list[str] = []
    await setup.agent.dry_run(lines.append)
    assert [json.loads(line)["externalId"] for line in lines] == [f"id{number}" for number in range(1203)]
    assert setup.service.run == 0
    await setup.agent.once()
    await setup.agent.dry_run(lines.append)
    await setup.agent.dry_run(lines.append, full=True)
    assert setup.reader.asked[-2:] == [("place 2", False), ("place 2", True)]


async def test_the_loop(setup: Setup, autojump_clock: trio.testing.MockClock) -> None:
    """The loop repeats the run, sooner after a failure, and reads a key that an admin has changed."""
    times: list[float] = []
    failures: list[Exception] = [ServiceRefused("invalid token", 401), ServiceRefused("no", 403)]

    def step(operation: str, body: Mapping[str, Any]) -> None:
        if operation == "begin":
            times.append(autojump_clock.current_time())
            if len(times) > 1 and failures:
                raise failures.pop()
            if len(times) == 6:
                raise Enough

    setup.service.before = step
    with pytest.raises(Enough):
        await setup.agent.run(Notifier({}))
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert [260 < wait < 340 for wait in waits] == [True, False, False, True, True]
    assert waits[1] < waits[2] < 20
    assert len(setup.service.applied) == 3


def test_a_state_is_found_again(tmp_path: Path) -> None:
    """A saved state is loaded again. Its directory is created with mode 0700."""
    state = StateFile(tmp_path / "made" / "state.json")
    assert state.load() == {}
    for value in ({"cursor": "ä"}, {"cursor": None}):
        state.save(value)
        assert StateFile(tmp_path / "made" / "state.json").load() == value
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_malformed_state(tmp_path: Path, content: bytes) -> None:
    """A malformed state counts as missing and can be saved again."""
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert StateFile(path).load() == {}
    StateFile(path).save({"a": 1})
    assert StateFile(path).load() == {"a": 1}

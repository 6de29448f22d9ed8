"""Small fakes: a directory that is held in a list, and the part of the service that receives a run."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sallyport.areas.directory.entry.entry import Batch, Entry, Person
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading.reader import Batches, LdapSource
from sallyport.base.errors import ServiceRefused
from sallyport.base.secret import Secret

PREFIX = "/api/v1/agent/directory/"


def person(number: int) -> Person:
    """Return the person with this number."""
    return Person(f"id{number}", f"uid=u{number},dc=x", f"u{number}", (), Status.ACTIVE, (), {})


@dataclass
class ListReader:
    """A directory that is held in a list. asked: the (cursor, full) of each read. breaks: the error that ends each
    read.
    """

    entries: Sequence[Entry]
    asked: list[tuple[str, bool]] = field(default_factory=list)
    breaks: Exception | None = None

    @asynccontextmanager
    async def read(self, source: LdapSource, cursor: str = "", *, full: bool = True) -> AsyncIterator[Batches]:
        """Yield batches of 20, as the real reader does."""
        self.asked.append((cursor, full))

        async def batches() -> Batches:
            for at in range(0, len(self.entries), 20):
                yield Batch(self.entries[at : at + 20])
            if self.breaks is not None:
                raise self.breaks
            yield Batch((), complete=True, cursor=f"place {len(self.asked)}")

        yield batches()


@dataclass
class RunService:
    """The part of the service that receives the runs of an agent.

    takes: returns whether an entry is accepted. before, after: are called before and after each answer, and may raise.
    applied: the entries of each finished run, and whether the run was complete. applies: if False, no import ends.
    """

    takes: Callable[[dict[str, Any]], bool] = lambda entry: True
    before: Callable[[str, Mapping[str, Any]], None] = lambda operation, body: None
    after: Callable[[str, Mapping[str, Any]], None] = lambda operation, body: None
    applied: list[tuple[list[dict[str, Any]], bool]] = field(default_factory=list)
    cursor: str = ""
    applies: bool = True
    run: int = 0
    sizes: list[int] = field(default_factory=list)
    _entries: list[dict[str, Any]] = field(default_factory=list)
    _sequence: int = 1

    def post(
        self, path: str, body: Mapping[str, Any], *, key: Secret | None = None, timeout_s: float = 30.0
    ) -> dict[str, object]:
        operation = path.removeprefix(PREFIX)
        self.before(operation, body)
        answer = {"begin": self._begin, "batch": self._batch, "finish": self._finish}[operation](body)
        self.after(operation, body)
        return answer

    def _begin(self, body: Mapping[str, Any]) -> dict[str, object]:
        self.run += 1
        self._entries, self._sequence = [], 1
        return {"runId": self.run, "sequence": 1, "cursor": self.cursor}

    def _batch(self, body: Mapping[str, Any]) -> dict[str, object]:
        if body["runId"] != self.run:
            raise ServiceRefused("run not found", 404)
        if body["sequence"] < self._sequence:
            return {"sequence": self._sequence}
        assert body["sequence"] == self._sequence
        if not all(map(self.takes, body["entries"])):
            raise ServiceRefused("invalid dn", 400)
        self.sizes.append(len(body["entries"]))
        self._entries += body["entries"]
        self._sequence += 1
        return {"sequence": self._sequence}

    def _finish(self, body: Mapping[str, Any]) -> dict[str, object]:
        assert (body["runId"], body["sequence"]) == (self.run, self._sequence)
        self.applied.append((self._entries, body["complete"]))
        self.cursor = body["cursor"] if self.applies else self.cursor
        return {"jobId": 1}

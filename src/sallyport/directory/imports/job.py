"""An import: a job of a directory, where it is read from, and what its transactions know."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Protocol, TypeAlias

from sallyport.base.secret import Secret
from sallyport.directory.entry import Batch
from sallyport.directory.mapping import FieldMapping
from sallyport.store.model import Tx

MOST_ERRORS: Final = 20
"""So many of the first errors are kept with a job."""
LONGEST_ERROR: Final = 500


class State(StrEnum):
    """Of a job."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


OPEN: Final = frozenset({State.QUEUED, State.RUNNING})


class Removals(IntEnum):
    """Whether a job may remove most of what a directory has: it stops before it does, until somebody confirms it."""

    FEW = 0
    STOPPED = 1
    CONFIRMED = 2


class Kind(StrEnum):
    """What a job does: reads an uploaded file, what an agent has sent, or a directory; maps what is there anew; or
    removes the directory with all that is known of it."""

    LDIF = "ldif"
    AGENT = "agent"
    READING = "reading"
    MAPPING = "mapping"
    REMOVAL = "removal"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is stored. file: its name among the files of imports. complete: who is not told of is gone.
    source, errors: JSON. position: lines of the prepared file that are written. removals: a Removals. Times in
    microseconds."""

    id: int
    tenant_id: int
    domain_id: int
    directory_id: int
    directory_name: str
    directory_kind: str
    kind: str
    state: str
    file_name: str
    file: str
    complete: int
    source: str
    cursor: str
    total: int
    added: int
    updated: int
    removed: int
    skipped: int
    failed: int
    position: int
    errors: str
    message: str
    removals: int
    created_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be. source: JSON of what is read where that is not as the directory has it; secret: for it."""

    directory_id: int
    kind: Kind
    file_name: str = ""
    file: str = ""
    complete: bool = False
    source: str = ""
    secret: bytes | None = None


ATTRIBUTES: Final = "attributes"
"""A setting of a Source that nobody sets: what the mappings take, with commas between them."""


@dataclass(frozen=True, slots=True)
class Source:
    """A directory that is read over a network. kind: of the directory. settings: as `directory.model` names them, and
    ATTRIBUTES."""

    domain_id: int
    kind: str
    app_url: str
    account_name: str
    settings: Mapping[str, str]
    secret: Secret | None


Read: TypeAlias = Callable[[Source, str, bool], AbstractAsyncContextManager[AsyncIterator[Batch]]]
"""Reads a directory: source, the cursor of the reading before, and whether all of it is to be read; the batches, while
the block lasts. SallyportError: what is wrong, for a person; what was told until then is thrown away."""


@dataclass(frozen=True, slots=True)
class Run:
    """One import as its transactions see it. marks: what was told of is marked, since the rest is gone at the end.
    mapped: the attributes that this mapping, and those of groups, take. started_at: microseconds. former: the mappings
    of groups that it has removed, by name without case, for those that are made anew behind them; a restart in between
    forgets them."""

    domain_id: int
    directory_id: int
    job_id: int
    cloud: bool
    marks: bool
    mapping: FieldMapping
    mapped: frozenset[str]
    started_at: int
    former: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """What may have become of an entry that nobody has changed: its name, with that of a unit above it, and whether it
    may log in, with time. Empty: not told."""

    dn: str
    dn_key: bytes
    status: str


@dataclass(slots=True)
class Counts:
    """What has become of entries. changed: anything that a login may look at."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything is not as it was."""
        return bool(self.added or self.updated or self.removed)

    def __iadd__(self, other: "Counts") -> "Counts":
        self.added += other.added
        self.updated += other.updated
        self.removed += other.removed
        self.skipped += other.skipped
        self.failed += other.failed
        return self


class Revocations(Protocol):
    """Ends the sessions of users once the transaction is through, in domains that say so."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Users of a domain lose their access. reason: for a person."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Whether to lose a group is to lose access."""

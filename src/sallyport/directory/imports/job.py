"""The values of imports: a job, the source that it reads, and the state that its transactions share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Protocol, TypeAlias

from sallyport.base.secret import Secret
from sallyport.directory.entry import Batch
from sallyport.directory.mapping import FieldMapping
from sallyport.store.model import Tx

MOST_ERRORS: Final = 20
"""Maximum number of errors that are stored with a job. The first errors are stored."""
LONGEST_ERROR: Final = 500


class State(StrEnum):
    """The state of a job."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


OPEN: Final = frozenset({State.QUEUED, State.RUNNING})


class Removals(IntEnum):
    """Whether a job may remove most of a directory. A job stops before such a removal until an admin confirms it."""

    FEW = 0
    STOPPED = 1
    CONFIRMED = 2


class Kind(StrEnum):
    """The work of a job: import an uploaded file, an agent's run, or a reading; apply a changed mapping; or remove the
    directory with its people and groups."""

    LDIF = "ldif"
    AGENT = "agent"
    READING = "reading"
    MAPPING = "mapping"
    REMOVAL = "removal"


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. file: name of the file in `ImportFiles`. complete: whether to remove the entries that the source
    does not have. source, errors: JSON. position: the number of lines of the prepared file that are written. removals:
    a value of `Removals`. node_id: the node that has the file and runs the job; 0 for any node. Times are in
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
    node_id: int

    @property
    def needs_file(self) -> bool:
        """Return whether the job cannot run without a file that only its node has."""
        return self.kind in (Kind.LDIF, Kind.AGENT) and self.removals != Removals.CONFIRMED


@dataclass(frozen=True, slots=True)
class NewJob:
    """A new job. source: the settings that replace the directory's own, as JSON. secret: the secret that belongs to
    these settings."""

    directory_id: int
    kind: Kind
    file_name: str = ""
    file: str = ""
    complete: bool = False
    source: str = ""
    secret: bytes | None = None


ATTRIBUTES: Final = "attributes"
"""The name of the setting in `Source.settings` that lists the attributes of all mappings, separated by commas."""


@dataclass(frozen=True, slots=True)
class Source:
    """A directory to read over a network. kind: the kind of the directory. settings: the settings, which are named as
    in `SaveDirectory`, and ATTRIBUTES."""

    domain_id: int
    kind: str
    app_url: str
    account_name: str
    settings: Mapping[str, str]
    secret: Secret | None


Read: TypeAlias = Callable[[Source, str, bool], AbstractAsyncContextManager[AsyncIterator[Batch]]]
"""A function that reads a directory. It gets the source, the cursor of the last reading, and whether to read
everything. It returns a context manager of batches. SallyportError: the reading failed, and its batches are
discarded."""


Check: TypeAlias = Callable[[Source], Awaitable[int]]
"""A function that tries a directory: it connects, logs in, and reads the first accounts. It returns their number.
SallyportError: the reason why the directory cannot be read."""


@dataclass(frozen=True, slots=True)
class Run:
    """The state that the transactions of an import share. marks: whether to mark each entry that the source has, and to
    remove the unmarked entries at the end. mapped: the attributes in the mappings of the directory and its groups.
    started_at: the time in microseconds. former: the mappings of groups that this import has removed, by folded name; a
    group that the import adds again gets its former mapping. A restart loses `former`."""

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
    """The present name and status of an unchanged entry; a value that is not known is empty. They differ from the
    stored values if a unit above the entry was renamed, or if the status has changed with time."""

    dn: str
    dn_key: bytes
    status: str


@dataclass(slots=True)
class Counts:
    """The number of entries for each result."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def changed(self) -> bool:
        """Return whether entries were added, updated or removed."""
        return bool(self.added or self.updated or self.removed)

    def __iadd__(self, other: "Counts") -> "Counts":
        self.added += other.added
        self.updated += other.updated
        self.removed += other.removed
        self.skipped += other.skipped
        self.failed += other.failed
        return self


class Revocations(Protocol):
    """The revocation of access. After the transaction, it ends the sessions of the users in domains that disconnect on
    revocation."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Revoke the access of users of a domain. reason: text for the admin."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return whether a login rule of the domain names the group."""

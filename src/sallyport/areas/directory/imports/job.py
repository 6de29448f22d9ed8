"""The values of imports: a job, the source that it reads, and the state that its transactions share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Protocol, TypeAlias

from sallyport.areas.directory.entry.entry import Batch
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.base.secret import Secret
from sallyport.store.model import Tx

MAX_ERRORS: Final = 20
"""Maximum number of errors that are stored with a job. The first errors are stored."""
MAX_ERROR_LENGTH: Final = 500


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


OPEN: Final = frozenset({JobState.QUEUED, JobState.RUNNING})


class Removals(IntEnum):
    """Whether a job may remove most of a directory. Before such a removal the job stops, and an admin must confirm the
    removal."""

    FEW = 0
    STOPPED = 1
    CONFIRMED = 2


class JobKind(StrEnum):
    """The task of a job. LDIF imports an uploaded file, AGENT the entries of an agent, and READING a directory that the
    service reads. MAPPING applies a changed mapping. REMOVAL removes the directory with its people and groups."""

    LDIF = "ldif"
    AGENT = "agent"
    READING = "reading"
    MAPPING = "mapping"
    REMOVAL = "removal"


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. Times are in microseconds.

    file: the name of the file in `ImportFiles`. complete: whether to remove the stored entries that the source does not
    contain. source, errors: JSON. position: the number of lines of the prepared file that were written. removals: a
    value of `Removals`. node_id: the node that has the file and runs the job; 0 if any node may run the job.
    """

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
        """Return whether the job needs a file that only its node has."""
        return self.kind in (JobKind.LDIF, JobKind.AGENT) and self.removals != Removals.CONFIRMED


@dataclass(frozen=True, slots=True)
class NewJob:
    """A new job. source: the settings to use instead of the stored settings of the directory, as JSON. secret: the
    secret for these settings."""

    directory_id: int
    kind: JobKind
    file_name: str = ""
    file: str = ""
    complete: bool = False
    source: str = ""
    secret: bytes | None = None


ATTRIBUTES: Final = "attributes"
"""The name of the setting in `DirectorySource.settings` that lists the attributes of all mappings. Commas separate
them."""


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """A directory to read over a network. kind: the kind of the directory. settings: the settings by field name of
    `SaveDirectory`, and one setting more, ATTRIBUTES."""

    domain_id: int
    kind: str
    app_url: str
    account_name: str
    settings: Mapping[str, str]
    secret: Secret | None


Read: TypeAlias = Callable[[DirectorySource, str, bool], AbstractAsyncContextManager[AsyncIterator[Batch]]]
"""A function that reads a directory. The arguments are the source, the cursor that the last call returned, and whether
to read all entries. The result is a context manager of batches. Raises SallyportError if the directory could not be
read completely; the caller then discards the batches."""


Check: TypeAlias = Callable[[DirectorySource], Awaitable[int]]
"""A function that tests a directory: it connects, logs in, and reads the first accounts. It returns the number of these
accounts. Raises SallyportError with the reason if the directory cannot be read."""


@dataclass(frozen=True, slots=True)
class ImportRun:
    """The state that the transactions of an import share.

    marks: whether to mark each entry that the source contains. At the end of the import, the unmarked entries are then
    removed. mapped: the attributes that the mappings of the directory and its groups use. started_at: the time in
    microseconds.

    former: the mappings for groups that this import adds, by case-folded group name: those of files, and those of
    groups that this import has removed. The latter are lost in a restart.
    """

    domain_id: int
    directory_id: int
    job_id: int
    cloud: bool
    marks: bool
    mapping: FieldMapping
    mapped: frozenset[str]
    started_at: int
    former: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class EntryCounts:
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

    def __iadd__(self, other: "EntryCounts") -> "EntryCounts":
        self.added += other.added
        self.updated += other.updated
        self.removed += other.removed
        self.skipped += other.skipped
        self.failed += other.failed
        return self


class Revocations(Protocol):
    """A service that revokes the access of users. Some domains disconnect users on revocation. Their sessions then end
    after the transaction."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Revoke the access of users of a domain. reason: a text for the admin."""

    def release(self, tx: Tx, domain_id: int, name: str) -> None:
        """Delete what belongs to the person of a domain with this login name, because the next person with the name may
        be another one."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return whether a login rule of the domain refers to the group."""

    def device_matters(self, domain_id: int) -> bool:
        """Return whether a login rule of the domain compares facts of devices."""

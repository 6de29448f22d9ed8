"""People, groups and their directory as they are stored, and what an import does with them."""

from dataclasses import dataclass, field
from typing import Final

from sallyport.directory.entry import Status
from sallyport.directory.mappings.model import FieldMapping

USERS: Final = "directory_users"
CLOUD_USERS: Final = "directory_users/cloud"
GROUPS: Final = "directory_groups"
"""The kept totals of a domain."""
GONE: Final = frozenset({Status.DISABLED, Status.EXPIRED})
"""Who is so has lost their access; who is locked is back soon."""


@dataclass(frozen=True, slots=True)
class User:
    """A person of a directory. name: the login name; login: the directory's own, where a mapping gives another.
    source: the kind of the directory. fields: JSON of the mapped fields. Times in microseconds."""

    id: int
    domain_id: int
    directory_id: int
    dn: str
    login: str
    name: str
    display_name: str
    email: str
    upn: str
    status: str
    fields: str
    source: str
    directory_name: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a directory. members: what is in it itself. mapping: JSON."""

    id: int
    domain_id: int
    directory_id: int
    dn: str
    name: str
    members: int
    mapping: str


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

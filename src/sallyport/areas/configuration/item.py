"""The objects that files, or an import, describe; and the plan of their changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sallyport.areas.configured import AnyChange, AnyKind
from sallyport.base.wire import JSON

KEEP: Final = "keep"
"""The value of a secret that keeps the stored secret."""
APPLY: Final = "configuration.apply"
UNDO: Final = "configuration.undo"


@dataclass(frozen=True, slots=True)
class Item:
    """An object that a file describes.

    kind: the name of a `Kind`, such as `client`. name: its name, for messages. fields: its fields, by the names of the
    API; the field `domain`, or `domains`, has names of domains. A secret is a text, {"hex": octets}, or KEEP. source:
    the place of the object in its file, `file:line`, for messages.
    """

    kind: str
    name: str
    fields: Mapping[str, object]
    source: str


class Sign(StrEnum):
    """What a step does."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"
    UNCHANGED = "="


class Prune(StrEnum):
    """The objects to remove: none, those that files manage and that are not in the files any more, or the same without
    the limit on their number."""

    NOTHING = "nothing"
    MANAGED = "managed"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Step:
    """The planned change of one object.

    identity: the form for comparison of its name. fields: [value before, value after] of each changed field, without
    secrets.
    """

    sign: Sign
    kind: AnyKind
    name: str
    source: str
    identity: str
    fields: Mapping[str, list[JSON]]
    domains: tuple[str, ...] = ()
    change: AnyChange | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What `Engine.apply` changes for a tenant.

    version: the version of the configuration for which the plan was made. managed: the names of all objects of the
    files, by kind. released: the names that files do not manage any more. overridden: the steps of an import that
    change objects of files. action: that of its entry in the audit trail; empty if another entry has its changes.
    """

    tenant_id: int
    version: int
    steps: Sequence[Step]
    managed: Mapping[str, Sequence[str]]
    released: Mapping[str, Sequence[str]]
    overridden: Sequence[Step] = ()
    action: str = APPLY

    @property
    def changes(self) -> list[Step]:
        """The steps that change something."""
        return [each for each in self.steps if each.sign is not Sign.UNCHANGED]

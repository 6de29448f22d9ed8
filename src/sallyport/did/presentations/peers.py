"""What presentations need of others: targets and their users, and a meter."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx


class Person(Protocol):
    """An endpoint user."""

    @property
    def id(self) -> int:
        """Its userId."""

    @property
    def domain_id(self) -> int:
        """Whose it is."""

    @property
    def name(self) -> str:
        """Its userName."""


class AccessTarget(Protocol):
    """An instance or a group; see `endpoints.targets`."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_active(self) -> bool:
        """Whether it grants anything."""

    @property
    def session_s(self) -> int | None:
        """How long its users may stay."""

    def admits(self, tx: Tx, method: str, names: Sequence[str]) -> bool:
        """Whether one of the people of these names may authenticate so there, or, without names, anybody."""


class AccessTargets(Protocol):
    """Knows the instances and groups."""

    def find(self, tx: Tx, tenant_id: int, domain_id: int, name: str, *, group: bool = False) -> AccessTarget | None:
        """The tenant's instance or group of that name or id; one of the domain first."""

    def members(self, tx: Tx, group_id: int) -> Sequence[Person]:
        """The users of a group."""


class Meter(Protocol):
    """Where presentations are counted."""

    def presented(self, result: str) -> None:
        """accepted, declined, over, or why it was refused: of a closed set."""

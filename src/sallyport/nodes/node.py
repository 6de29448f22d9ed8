"""A node as the others see it."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.store.foreign import DEAD_US

__all__ = ["DEAD_US", "LEASE_US", "Node"]

LEASE_US: Final = 5 * SECOND
"""Duration of the lease. A holder renews it with each heartbeat."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node. id: the number of the name, never used for another one. session: random, new with each start.
    installation: random, the same for all starts with one data directory. key_version: of its newest master key.
    address: the URL of HTTP, for people.
    silent_us: the time since the last heartbeat. leads: whether it holds the lease of the periodic work."""

    id: int
    name: str
    session: str
    installation: str
    version: str
    key_version: int
    address: str
    started_at: int
    seen_at: int
    silent_us: int
    leads: bool

    @property
    def is_alive(self) -> bool:
        """Return whether the node sends heartbeats."""
        return self.silent_us < DEAD_US

"""A node as the others see it."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.store.foreign import DEAD_US

__all__ = ["DEAD_US", "LEASE_US", "Node"]

LEASE_US: Final = 5 * SECOND
"""Duration of the lease. Its holder renews it with each heartbeat."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node. id: a number that belongs to the node's name and is never used for another name. session: a random text
    that is new at each start. installation: a random text that stays the same for a data directory. key_version: the
    version of its newest master key. address: the URL of its HTTP listener, which is only displayed. silent_us: the
    time since its last heartbeat. leads: whether it holds the lease of the periodic work."""

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
        """Return whether the node has sent a heartbeat within the last DEAD_US."""
        return self.silent_us < DEAD_US

"""A node as other nodes see it."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.store.foreign import DEAD_US

__all__ = ["DEAD_US", "LEASE_US", "Node"]

LEASE_US: Final = 5 * SECOND
"""Duration of the lease, in microseconds. The node that holds the lease renews it with each heartbeat."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster.

    id: a number that belongs to the node's name, and is never used for another name. session: a random text, new at
    each start. installation: a random text that belongs to a data directory. key_version: the version of the node's
    newest master key. address: the URL of the node's HTTP listener, for display only. silent_us: the time since the
    last heartbeat, in microseconds. leads: whether the node holds the lease of the periodic work.
    """

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
        """Return whether the last heartbeat is more recent than DEAD_US."""
        return self.silent_us < DEAD_US

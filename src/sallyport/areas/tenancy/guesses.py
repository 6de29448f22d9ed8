"""The rate limit for wrong keys: API keys of agents, keys of wallets, and passwords at the console."""

import ipaddress
from collections.abc import Callable
from functools import partial
from heapq import nlargest
from typing import Final

from sallyport.base.clock import Clock
from sallyport.nodes.notices import Notices

BURST: Final = 30
"""Number of wrong keys that a source may send without a pause."""
REFILL_US: Final = 10_000_000
"""Time in microseconds after which a source may send one more wrong key."""
MAX_SOURCES: Final = 4096


class Guesses:
    """A rate limit for wrong keys from each source.

    The limit is a token bucket of size `burst`. One token is added every `refill_us` microseconds. A source is an IPv4
    address, or the /64 prefix of an IPv6 address, because a /64 usually belongs to one subscriber. If the table is
    full, the quarter of the sources that reaches zero first is evicted. So an attacker cannot reset the count of one
    source by single failures of many others.

    tell: a function that sends the network of a source with a wrong key to the other nodes. The other nodes pass it to
    `count`.
    """

    def __init__(
        self,
        *,
        burst: int = BURST,
        refill_us: int = REFILL_US,
        max_sources: int = MAX_SOURCES,
        tell: Callable[[str], None] = lambda _network: None,
    ) -> None:
        self.burst = burst
        self.refill_us = refill_us
        self.tell = tell
        self._max_sources = max_sources
        self._spent = dict[str, tuple[float, int]]()

    def too_many(self, source: str, now: int) -> bool:
        """Return whether a source has reached the limit. now: the current time in microseconds."""
        return self._counted(network_of(source), now) > self.burst - 1

    def is_unknown(self, source: str, now: int) -> bool:
        """Return whether no wrong key counts against a source. now: the time in microseconds."""
        return not self._counted(network_of(source), now)

    def fail(self, source: str, now: int) -> None:
        """Count a wrong key from a source, on all nodes. now: the current time in microseconds."""
        network = network_of(source)
        self.count(network, now)
        self.tell(network)

    def count(self, network: str, now: int) -> None:
        """Count a wrong key from a network on this node. Call this if another node has received a wrong key, or before
        a key is checked. now: the time in microseconds."""
        self._spent[network] = (self._counted(network, now) + 1, now)
        if len(self._spent) > self._max_sources:
            kept = max(1, self._max_sources * 3 // 4)
            self._spent = dict(nlargest(kept, self._spent.items(), key=lambda item: self._zero_at(*item[1])))

    def forgive(self, source: str, now: int) -> None:
        """Take back a failure of a source on this node. Call this if a key that was counted before its check is
        right."""
        network = network_of(source)
        self._spent[network] = (max(0.0, self._counted(network, now) - 1), now)

    def _counted(self, network: str, now: int) -> float:
        """Return the number of wrong keys that count against a network. The number decreases with time."""
        spent, at = self._spent.get(network) or (0.0, now)
        if at > now:  # the clock was set back
            at = now
            self._spent[network] = (spent, at)
        return max(0.0, spent - max(0, now - at) / self.refill_us)

    def _zero_at(self, spent: float, at: int) -> float:
        """Return the time in microseconds at which a count reaches zero."""
        return at + spent * self.refill_us


def guesses_of_all_nodes(
    notices: Notices, kind: str, clock: Clock, *, burst: int, refill_us: int = REFILL_US
) -> Guesses:
    """Return the rate limit for wrong keys of one kind. A wrong key counts on every node, whichever node has received
    it. kind: the name of the kind. clock: a function that returns the time in microseconds."""
    notice = f"wrong_{kind}"
    guesses = Guesses(burst=burst, refill_us=refill_us, tell=partial(notices.send, notice))
    notices.receive(notice, lambda values, age_us: guesses.count(str(values[0]), clock() - age_us))
    return guesses


def network_of(source: str) -> str:
    """Return the key under which the wrong keys of a source count: its address or /64 prefix. A source that is no
    address is returned unchanged."""
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)

"""Who tries out keys: sources that have sent too many that are none. Time is passed in."""

import ipaddress
from typing import Final

from sallyport.base.bounded import BoundedMap

BURST: Final = 30
"""Wrong keys that a source may send at once."""
REFILL_US: Final = 10_000_000
"""And one more each so many microseconds."""
MAX_SOURCES: Final = 4096


class Guesses:
    """A bucket for each source of late; the one that failed longest ago makes room.

    A source is an IPv4 address, or the /64 of an IPv6 address, which is one subscriber's.
    """

    def __init__(self, *, burst: int = BURST, refill_us: int = REFILL_US, max_sources: int = MAX_SOURCES) -> None:
        self._burst = burst
        self._refill_us = refill_us
        self._spent = BoundedMap[str, tuple[float, int]](max_sources)

    def too_many(self, source: str, now: int) -> bool:
        """Whether this source has to wait."""
        return self._counted(_network(source), now) > self._burst - 1

    def fail(self, source: str, now: int) -> None:
        """Count a key that is none."""
        network = _network(source)
        spent = self._counted(network, now) + 1
        self._spent.put(network, (spent, now))

    def _counted(self, network: str, now: int) -> float:
        """What is still counted against a source."""
        spent, at = self._spent.get(network) or (0.0, now)
        return max(0.0, spent - max(0, now - at) / self._refill_us)


def _network(source: str) -> str:
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)

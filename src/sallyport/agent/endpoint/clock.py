"""The service's time, as far as the agent knows it: a host's own clock may be hours off, and may be set at any time.

Each new state has its time of issue. From then on the agent adds the time of the host's boot clock, which cannot be
set. After a restart of the host it uses the wall clock, but never a time before the last state.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sallyport.agent.endpoint.memory import Anchor
from sallyport.base.clock import now_us

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the id of the present boot; empty if it is not known."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def ticks() -> int:
    """Return the microseconds since the host booted, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class ServiceClock:
    """The service's clock. wall, since_boot: the host's, in microseconds; boot: which boot it is."""

    def __init__(
        self, wall: Callable[[], int] = now_us, since_boot: Callable[[], int] = ticks, boot: str | None = None
    ) -> None:
        self._wall = wall
        self._since_boot = since_boot
        self._boot = boot_id() if boot is None else boot

    def anchor(self, issued: int) -> Anchor:
        """Return the anchor of a new state, for the memory."""
        return Anchor(self._boot, self._since_boot(), issued)

    def now(self, anchor: Anchor | None) -> int:
        """Return the service's time: microseconds since 1970, UTC."""
        if anchor is None:
            return self._wall()
        passed = self._since_boot() - anchor.ticks
        if anchor.boot == self._boot and self._boot and passed >= 0:
            return anchor.issued + passed
        return max(self._wall(), anchor.issued)

    def ahead(self, anchor: Anchor | None) -> int:
        """Return the microseconds that the host's clock is ahead of the service's."""
        return self._wall() - self.now(anchor)

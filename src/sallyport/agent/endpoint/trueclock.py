"""The time of the service, as well as the agent knows it: a host's own clock may be hours off, and be set at any time.

Each new state says when it was issued. From then on the clock that counts since the host booted tells the time, which
nobody sets. After a restart of the host its wall clock is all there is, but time does not go back behind what the
service has said.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sallyport.agent.endpoint.memory import Anchor
from sallyport.base.clock import now_us

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Names the time since the host booted; empty where nobody knows."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def ticks() -> int:
    """Microseconds since the host booted, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class TrueClock:
    """The service's clock. wall, since_boot: the host's, in microseconds; boot: which boot it is."""

    def __init__(
        self, wall: Callable[[], int] = now_us, since_boot: Callable[[], int] = ticks, boot: str | None = None
    ) -> None:
        self._wall = wall
        self._since_boot = since_boot
        self._boot = boot_id() if boot is None else boot

    def anchor(self, issued: int) -> Anchor:
        """What is to be remembered of a state that has just come."""
        return Anchor(self._boot, self._since_boot(), issued)

    def now(self, anchor: Anchor | None) -> int:
        """Microseconds since 1970, UTC."""
        if anchor is None:
            return self._wall()
        passed = self._since_boot() - anchor.ticks
        if anchor.boot == self._boot and self._boot and passed >= 0:
            return anchor.issued + passed
        return max(self._wall(), anchor.issued)

    def ahead(self, anchor: Anchor | None) -> int:
        """How far the host's clock is ahead of the service's, in microseconds."""
        return self._wall() - self.now(anchor)

"""Changes of a mode that end by themselves: what was to be tried and is not confirmed.

What is due is in the store, so that a restart does not forget it. While the process runs it counts on the monotonic
clock: a wall clock that is set forward ends no trial early, and one that is set back does not make it longer. After a
restart the wall clock is all there is; then no trial lasts longer than it was to last.
"""

from collections.abc import Callable
from typing import Final

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.periodic import every
from sallyport.domains.domain import Domain
from sallyport.domains.service import Domains

LOOK_S: Final = 1.0

log = structlog.get_logger()


class Reverts:
    """Takes back what nobody has confirmed. clock: the wall's; monotonic: seconds."""

    def __init__(
        self, domains: Domains, clock: Clock = now_us, monotonic: Callable[[], float] = trio.current_time
    ) -> None:
        self._domains = domains
        self._clock = clock
        self._monotonic = monotonic
        self._due: dict[tuple[int, int], float] = {}  # by domain and time of the store

    async def run(self) -> None:
        """Take back what becomes due, until cancelled."""
        await every(LOOK_S, self.take_back, failure="domain_mode_revert_failed")

    async def take_back(self) -> int:
        """Take back what is due now; how many domains that are. StoreError."""
        now = self._monotonic()
        waiting = [each for each in self._domains.table.by_id.values() if each.reverts_at is not None]
        due = {_key(domain): self._due.get(_key(domain), now + self._left_s(domain)) for domain in waiting}
        self._due = due
        return sum([await self._domains.revert(*key) for key, deadline in due.items() if deadline <= now])

    def _left_s(self, domain: Domain) -> float:
        """How long a domain that is seen for the first time waits from now on."""
        reverts_at, set_at = domain.reverts_at or 0, domain.revert_set_at or 0
        return max(0, min(reverts_at - self._clock(), reverts_at - set_at)) / SECOND


def _key(domain: Domain) -> tuple[int, int]:
    return domain.id, domain.reverts_at or 0

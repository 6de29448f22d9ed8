"""Watch how old the data of cloud directories are.

Logins by certificate of people who exist only in a cloud directory depend on data that must not be too old. Each domain
sets the limit.
"""

from collections.abc import Callable
from typing import Final

import structlog

from sallyport.areas.directory import repo
from sallyport.areas.domains.domain import DomainTable
from sallyport.base.clock import SECOND, Clock
from sallyport.metrics import DirectoryMetrics
from sallyport.nodes.periodic import every
from sallyport.store.model import Store

LOOK_S: Final = 60.0
HOUR_US: Final = 3600 * SECOND

log = structlog.get_logger()


class Ages:
    """The ages of the data of all cloud directories. The node with the lease runs `run`. domains: a function that
    returns the current domains."""

    def __init__(
        self, store: Store, domains: Callable[[], DomainTable], metrics: DirectoryMetrics, clock: Clock
    ) -> None:
        self._store = store
        self._domains = domains
        self._metrics = metrics
        self._clock = clock
        self._old: frozenset[int] = frozenset()

    async def run(self) -> None:
        """Export the ages, and log which data are too old, until cancelled."""
        try:
            await every(LOOK_S, self.look, failure="directory_ages_not_read")
        finally:
            self._metrics.aged({})  # another node exports them now
            self._old = frozenset()

    async def look(self) -> None:
        """Export the ages. Log each directory once when its data become too old. Raises StoreError."""
        domains, now, ages, old = self._domains().by_id, self._clock(), dict[int, tuple[float, float]](), set[int]()
        for each in await self._store.read(repo.data_ages):
            domain = domains.get(each.domain_id)
            if domain is None:
                continue
            until = each.at + domain.directory_max_age_h * HOUR_US
            found = each.at / SECOND, until / SECOND
            ages[domain.id] = min(found, ages.get(domain.id, found))
            if until < now:
                old.add(each.id)
                if each.id not in self._old:
                    hours = (now - each.at) // HOUR_US
                    log.warning("directory_data_too_old", domain=domain.name, directory=each.name, hours=hours)
        self._metrics.aged(ages)
        self._old = frozenset(old)

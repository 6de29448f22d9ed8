"""Exemplars of metrics: the event of a slow login, which a person opens from a graph.

When a duration is observed, the event of the login has no id yet. So only its domain and time are kept, and the ids are
read at a scrape that shows exemplars.
"""

from collections.abc import Sequence
from typing import Final

import structlog
import trio

from sallyport.areas.events import repo
from sallyport.base.errors import StoreError
from sallyport.metrics import Durations
from sallyport.store.model import Store

log = structlog.get_logger()

LIMIT_S: Final = 1.0
"""Time for which a scrape waits for the ids. After that it has the exemplars of before."""


class Exemplars:
    """The exemplars of some histograms."""

    def __init__(self, store: Store, histograms: Sequence[Durations]) -> None:
        self._store = store
        self._histograms = histograms

    async def renew(self) -> None:
        """Make an exemplar of the last login of each bucket. If the store does not answer, change nothing."""
        taken = [each for histogram in self._histograms for each in histogram.take_logins()]
        places = {each.login for each in taken}
        if not places:
            return
        try:
            with trio.move_on_after(LIMIT_S):
                ids = await self._store.read(lambda tx: repo.ids_of(tx, places))
                for each in taken:
                    if each.login in ids:
                        each.buckets.show(each, ids[each.login])
        except StoreError as error:
            log.info("exemplars_not_read", error=str(error))

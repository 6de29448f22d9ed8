"""Read when the certificates in the configurations of domains expire, for the metrics."""

import json
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from typing import Final

import trio

from sallyport.areas.directory.repo import settings_with_certificates
from sallyport.areas.login.first.settings import FirstFactorSettings
from sallyport.certs.expiry import first_expiry, pem_texts
from sallyport.metrics import MAX_NAMES, CertificateMetrics
from sallyport.nodes.periodic import every
from sallyport.store.model import Store

LOOK_S: Final = 300.0


class CertificateWatch:
    """The certificates of directories and first factors. metrics: receives the time of the first expiry in each
    domain. If there are more than MAX_NAMES, the metrics have those that expire first."""

    def __init__(self, store: Store, first: FirstFactorSettings, metrics: CertificateMetrics) -> None:
        self._store = store
        self._first = first
        self._metrics = metrics

    async def run(self) -> None:
        """Read the certificates every few minutes, until cancelled."""
        await every(LOOK_S, self.look, failure="certificate_expiry_not_read")

    async def look(self) -> None:
        """Read the certificates once. Raises StoreError."""
        directories = await self._store.read(settings_with_certificates)
        self._metrics.of_domains = await trio.to_thread.run_sync(self._of_domains, directories)

    def _of_domains(self, directories: Sequence[tuple[int, str]]) -> dict[tuple[str, ...], float]:
        of_directories = ((domain, "directory", pem) for domain, text in directories for pem in _pem_of(text))
        of_first_factors = ((domain, "first_factor", pem) for domain, pem in self._first.certificates())
        found: dict[tuple[str, ...], float] = {}
        for domain, use, pem in chain(of_directories, of_first_factors):
            ends, place = first_expiry(pem), (str(domain), use)
            if ends is not None:
                found[place] = min(ends, found.get(place, ends))
        return dict(nsmallest(MAX_NAMES, found.items(), key=lambda item: item[1]))


def _pem_of(settings: str) -> Iterable[str]:
    try:
        return tuple(pem_texts(json.loads(settings)))
    except ValueError:
        return ()

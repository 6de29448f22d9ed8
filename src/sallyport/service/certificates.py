"""Read when the certificates in the configurations of domains expire, for the metrics."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import Final

import trio

from sallyport.areas.certificates.service import ServerCertificates
from sallyport.areas.directory.repo import settings_with_certificates
from sallyport.areas.domains.domain import Domain, DomainTable
from sallyport.areas.login.first.settings import FirstFactorSettings
from sallyport.certs.expiry import first_expiry, pem_texts
from sallyport.metrics import MAX_NAMES, CertificateMetrics
from sallyport.nodes.periodic import every
from sallyport.store.model import Store

LOOK_S: Final = 300.0


class CertificateWatch:
    """The certificates of directories and first factors, and the server certificates of domains.

    domains: a function that returns the current domains. metrics: receives the time of the first expiry in each domain.
    If there are more than MAX_NAMES, the metrics have those that expire first, and each tenant has a fair share of
    them.
    """

    def __init__(
        self,
        store: Store,
        first: FirstFactorSettings,
        servers: ServerCertificates,
        domains: Callable[[], DomainTable],
        metrics: CertificateMetrics,
    ) -> None:
        self._domains = domains
        self._store = store
        self._first = first
        self._servers = servers
        self._metrics = metrics

    async def run(self) -> None:
        """Read the certificates every few minutes, until cancelled."""
        await every(LOOK_S, self.look, failure="certificate_expiry_not_read")

    async def look(self) -> None:
        """Read the certificates once. Raises StoreError."""
        directories = await self._store.read(settings_with_certificates)
        self._metrics.of_domains = await trio.to_thread.run_sync(self._of_domains, directories, self._domains().by_id)

    def _of_domains(
        self, directories: Sequence[tuple[int, str]], domains: Mapping[int, Domain]
    ) -> dict[tuple[str, ...], float]:
        of_directories = ((domain, "directory", pem) for domain, text in directories for pem in _pem_of(text))
        of_first_factors = ((domain, "first_factor", pem) for domain, pem in self._first.certificates())
        pems = ((domain, "server_certificate", pem) for domain, _, pem in self._servers.pem_texts())
        found: dict[tuple[int, str], float] = {}
        for domain, use, pem in chain(of_directories, of_first_factors, pems):
            ends, key = first_expiry(pem), (domain, use)
            if ends is not None:
                found[key] = min(ends, found.get(key, ends))
        return {(str(domain), use): ends for (domain, use), ends in in_shares(found, domains, MAX_NAMES)}


def in_shares(
    found: Mapping[tuple[int, str], float], domains: Mapping[int, Domain], most: int
) -> list[tuple[tuple[int, str], float]]:
    """Return the certificates that expire first, at most a number. Each tenant gets a fair share of them.

    found: the times of the first expiry by domain and use. domains: the domains by id.
    """
    kept, counted = list[tuple[int, float, tuple[int, str]]](), Counter[int]()
    for key, ends in sorted(found.items(), key=itemgetter(1)):
        tenant = domains[key[0]].tenant_id if key[0] in domains else 0
        kept.append((counted[tenant], ends, key))
        counted[tenant] += 1
    return [(key, ends) for _, ends, key in nsmallest(most, kept)]


def _pem_of(settings: str) -> Iterable[str]:
    try:
        return tuple(pem_texts(json.loads(settings)))
    except ValueError:
        return ()

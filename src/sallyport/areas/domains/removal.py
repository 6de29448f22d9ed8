"""Remove a domain: first mark it, which hides it, and then delete its rows.

The first transaction marks the domain, frees its name and realms, and removes the domain from the lists of RADIUS
clients. From then on no look-up finds the domain. A task deletes the domain's rows in small transactions
(`store.erasure`). After a restart, the task continues.

At the time of the removal, a login may wait for its second factor, or an agent may send a report. Such requests may
still write rows that refer to the domain. Therefore the row of the domain stays for GRACE_S, and the deletion of the
other rows is repeated until then. If the service does not run, the domain's row is deleted at once. Live sessions
continue until the network devices end them, but their records are deleted.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.domains import repo
from sallyport.areas.domains.domain import Domain
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict
from sallyport.base.text import counted
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.store import audit, erasure
from sallyport.store.model import Tx
from sallyport.store.slices import in_slices
from sallyport.store.snapshot import Configuration

EVERY_S: Final = 60.0
GRACE_S: Final = 600.0
"""Time for which the row of a removed domain is kept, in seconds. No login, batch of an import or API request takes so
long."""
NAMED: Final = 5
"""Maximum number of RADIUS clients that an error message names."""

log = structlog.get_logger()


class Removal:
    """The service that removes domains. erased_rows: returns the tables with rows of domains, in the order of their
    deletion."""

    def __init__(
        self,
        configuration: Configuration,
        cluster: Cluster,
        erased_rows: Callable[[], Sequence[erasure.Rows]],
        clock: Clock = now_us,
    ) -> None:
        self._erased_rows = erased_rows
        self._configuration = configuration
        self._cluster = cluster
        self._store = configuration.store
        self._clock = clock
        self._removed = trio.Event()
        self._removed.set()  # look for interrupted deletions at the start
        self._is_running = False

    async def preview(self, domain_id: int) -> tuple[Domain, Sequence[tuple[str, int]]]:
        """Return a domain. Also return the kinds of rows that are deleted with the domain, and the number of rows of
        each kind.

        Raises NotFound. Raises Conflict if the domain cannot be removed. Raises StoreError if the count takes too long.
        """

        def look(tx: Tx) -> tuple[Domain, Sequence[tuple[str, int]]]:
            return _removable(tx, domain_id), list(erasure.counts(tx, self._erased_rows(), domain_id))

        return await self._store.search(look)

    async def remove(self, domain_id: int) -> None:
        """Remove a domain from the next request on.

        Raises NotFound. Raises Conflict if the domain is the default of a RADIUS client, or if an import is waiting or
        running.
        """
        domain = await self._configuration.change(lambda tx: self.mark(tx, domain_id))
        log.info("domain_removed", domain=domain_id, name=domain.name)
        self.wake()

    def mark(self, tx: Tx, domain_id: int) -> Domain:
        """Mark a domain as removed, in the transaction of a caller, which then calls `wake`. Raises as `remove`
        does."""
        at, domain = self._clock(), _removable(tx, domain_id)
        repo.mark_removed(tx, domain_id, at)
        audit.record(
            tx,
            "domain.remove",
            at=at,
            tenant_id=domain.tenant_id,
            domain_id=domain_id,
            target=f"domain {domain_id} {domain.name}",
        )
        return domain

    def wake(self) -> None:
        """Delete the rows of domains that were removed."""
        self._configuration.forget()
        self._removed.set()

    async def run(self) -> None:
        """Delete the rows of removed domains, until cancelled."""
        self._is_running = True
        try:
            await every(0, self._next_round, failure="domain_erasure_failed")
        finally:
            self._is_running = False

    async def finish(self) -> bool:
        """Delete all remaining rows of removed domains, and return True. If the service runs on this node or on another
        node, return False, because the service itself deletes the rows."""
        if self._is_running or await self._has_nodes():
            return False
        await self.erase(grace_s=0)
        return True

    async def _has_nodes(self) -> bool:
        return self._cluster.is_shared and any(each.is_alive for each in await self._cluster.everyone())

    async def erase(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the rows that belong to removed domains. Also delete the row of each domain that was removed at least
        `grace_s` seconds ago.

        Raises StoreError if the store fails. Rows that were deleted before the failure stay deleted.
        """
        for domain_id, removed_at in await self._store.read(repo.removed):
            is_last = self._clock() - removed_at >= grace_s * SECOND
            slices = [rows.erase for rows in self._erased_rows()]
            await in_slices(self._store, partial(_same, domain_id), slices, repo.delete if is_last else _keep)
            self._configuration.forget()
            if is_last:
                log.info("domain_erased", domain=domain_id)

    async def _next_round(self) -> None:
        with trio.move_on_after(EVERY_S):
            await self._removed.wait()
        self._removed = trio.Event()
        await self.erase()


def _same(domain_id: int, _tx: Tx) -> int:
    return domain_id


def _keep(_tx: Tx, _domain_id: int) -> None:
    """Keep the domain's row, because requests that began before the removal may still refer to it."""


def _removable(tx: Tx, domain_id: int) -> Domain:
    """Return the domain if it may be removed. Raises NotFound, Conflict."""
    domain = repo.get(tx, domain_id)
    clients = repo.clients_by_default(tx, domain)
    if clients:
        more = f" and {len(clients) - NAMED} more" if len(clients) > NAMED else ""
        raise Conflict(
            f"the domain is the default of {counted(len(clients), 'RADIUS client', 'RADIUS clients')}: "
            f"{', '.join(clients[:NAMED])}{more}; first give each client another default domain, or remove the client"
        )
    if repo.has_open_imports(tx, domain_id):
        raise Conflict(
            "an import of the domain is waiting or running: wait until the import ends, or cancel the import"
        )
    return domain

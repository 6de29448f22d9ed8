"""What is asked of the audit trail."""

from sallyport.audit import repo
from sallyport.audit.repo import AuditQuery, AuditRow
from sallyport.store.model import Store, Tx


class Audit:
    """The audit trail, for those who look."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, query: AuditQuery) -> tuple[list[AuditRow], int]:
        """One page of entries, newest first, and how many match in all. StoreError."""

        def work(tx: Tx) -> tuple[list[AuditRow], int]:
            return repo.newest(tx, query), repo.matching(tx, query)

        return await self._store.search(work)

    async def newest(self, query: AuditQuery) -> list[AuditRow]:
        """`page` without the total. StoreError."""
        return await self._store.search(lambda tx: repo.newest(tx, query))

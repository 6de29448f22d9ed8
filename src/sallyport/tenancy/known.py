"""Look-ups of tokens and keys by their hash, with a bounded cache in front that is exact.

Only hashes that are not in the cache reach the store, one look-up at a time and each source in turn. A flood of wrong
keys takes one of the store's readers at most, and leaves the others to logins.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from sallyport.base.bounded import BoundedMap
from sallyport.base.fair_places import FairPlaces
from sallyport.store.model import Store, Tx


class Owned(Protocol):
    """A record of a tenant."""

    @property
    def tenant_id(self) -> int:
        """The tenant's internal id."""


RecordT = TypeVar("RecordT", bound=Owned)

CACHED = 4096
LONGEST = 128
"""Characters of a token; a longer one is none."""


class Known(Generic[RecordT]):
    """The records of the store by hash. find: reads a record. size: the records in memory; each tenant has a share.

    Unknown hashes are not cached: guesses would fill the cache.
    """

    def __init__(self, store: Store, find: Callable[[Tx, str], RecordT | None], *, size: int = CACHED) -> None:
        self._store = store
        self._find = find
        self._records = BoundedMap[str, RecordT](size)
        self._turns = FairPlaces[str](1)
        self._generation = 0

    async def find(self, hashed: str, source: str) -> RecordT | None:
        """Return the record with this hash in any state; None if there is none. source: the sender's address.
        StoreError."""
        record = self._records.get(hashed)
        if record is None:
            async with self._turns.place(source):
                record = self._records.get(hashed) or await self._look_up(hashed)
        return record

    def update(self, hashed: str, old: RecordT, new: RecordT) -> None:
        """Remember a newer record in place of one that is still remembered."""
        if self._records.get(hashed) is old:
            self._records.put(hashed, new, new.tenant_id)

    def forget(self) -> None:
        """Drop all that is remembered: after a revocation, a restore, or another process's change."""
        self._generation += 1
        self._records.clear()

    async def _look_up(self, hashed: str) -> RecordT | None:
        before = self._generation
        record = await self._store.read(lambda tx: self._find(tx, hashed))
        # A revocation that was committed during the read must not be overtaken by what the read saw.
        if record is not None and before == self._generation:
            self._records.put(hashed, record, record.tenant_id)
        return record

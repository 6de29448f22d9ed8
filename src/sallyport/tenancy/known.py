"""Look-ups of tokens and keys by their hash, with a bounded cache in front that is exact."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from sallyport.store.model import Store, Tx

RecordT = TypeVar("RecordT")

CACHED = 4096
LONGEST = 128
"""Characters of a token; a longer one is none."""


class Known(Generic[RecordT]):
    """What the store has by hash. find: reads a record by it.

    A record that is not there is not remembered: whoever guesses would fill the cache.
    """

    def __init__(self, store: Store, find: Callable[[Tx, str], RecordT | None], *, size: int = CACHED) -> None:
        self._store = store
        self._find = find
        self._size = size
        self._records: OrderedDict[str, RecordT] = OrderedDict()
        self._met: OrderedDict[str, None] = OrderedDict()
        self._generation = 0

    def has_met(self, hashed: str) -> bool:
        """Whether a record with this hash was there of late: whoever sends it does not guess."""
        return hashed in self._met

    async def find(self, hashed: str) -> RecordT | None:
        """The record with this hash, whatever its state. StoreError."""
        return self._records.get(hashed) or await self._look_up(hashed)

    def update(self, hashed: str, old: RecordT, new: RecordT) -> None:
        """Remember a newer record in place of one that is still remembered."""
        if self._records.get(hashed) is old:
            self._records[hashed] = new

    def forget(self) -> None:
        """Drop all that is remembered: after a revocation, a restore, or another process's change."""
        self._generation += 1
        self._records.clear()

    async def _look_up(self, hashed: str) -> RecordT | None:
        before = self._generation
        record = await self._store.read(lambda tx: self._find(tx, hashed))
        # A revocation that was committed during the read must not be overtaken by what the read saw.
        if record is not None and before == self._generation:
            self._records[hashed] = record
            self._met[hashed] = None
            for known in (self._records, self._met):
                if len(known) > self._size:
                    known.popitem(last=False)
        return record

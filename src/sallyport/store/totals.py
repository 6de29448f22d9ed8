"""Totals that were counted, remembered while a store is open."""

from dataclasses import dataclass
from threading import Lock

from sallyport.base.bounded import BoundedMap

MOST = 256
Search = tuple[str, int, str]
"""An index, a domain and the letters that are looked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """An entry in the log of a store's searches. mark: random, so that no entry of another history has it."""

    seq: int
    mark: int


class Totals:
    """How many rows the latest searches found, and the last change that was counted with them; for many threads."""

    def __init__(self) -> None:
        self._counted = BoundedMap[Search, tuple[int, Change]](MOST)
        self._lock = Lock()

    def get(self, search: Search) -> tuple[int, Change] | None:
        """What is remembered of a search."""
        return self._counted.get(search)

    def put(self, search: Search, total: int, counted: Change) -> None:
        """Remember a search as the latest. The longest unused search of the domain with the most makes room."""
        with self._lock:
            self._counted.put(search, (total, counted), search[1])

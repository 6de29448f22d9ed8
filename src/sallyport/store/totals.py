"""Totals that were counted, remembered while a store is open."""

from dataclasses import dataclass
from threading import Lock

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
        self._counted: dict[Search, tuple[int, Change]] = {}
        self._lock = Lock()

    def get(self, search: Search) -> tuple[int, Change] | None:
        """What is remembered of a search."""
        return self._counted.get(search)

    def put(self, search: Search, total: int, counted: Change) -> None:
        """Remember a search as the latest, in place of the one that nobody has asked for the longest."""
        with self._lock:
            self._counted.pop(search, None)
            self._counted[search] = total, counted
            if len(self._counted) > MOST:
                del self._counted[next(iter(self._counted))]

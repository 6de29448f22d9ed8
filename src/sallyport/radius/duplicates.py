"""Duplicate detection by source and identifier (RFC 5080 section 2.2.2).

Two requests are the same if source address, port, identifier and authenticator are equal. Duplicates are dropped while
the first one is pending. They get the same octets once it is answered.

A signed request with a new authenticator replaces the signed request that had its source and identifier before. An
unsigned request can be spoofed, so it replaces nothing: the table keeps it beside the others, by its authenticator.

Entries live between one and two windows. Two dictionaries alternate, so that expired entries need no search and a flood
cannot exceed the bound. A request that waits longer, for a second factor, is parked and stays known until its answer.
"""

from collections.abc import Callable

Source = tuple[str, int] | tuple[str, int, bytes]
"""The peer's address and port; and, where a socket has many addresses, which of them it sent to, in the kernel's form:
a NAS that asks two of our addresses counts its identifiers for each."""
Key = tuple[Source, int] | tuple[Source, int, bytes]
"""Source and identifier; of an unsigned request also the authenticator."""


class Entry:
    """One request. answer: None while it is pending. replaced: a newer request took its place, so that the NAS no
    longer waits for its answer.

    first, last: time of the first and of the last arrival, in seconds of the monotonic clock. gap: between the last two
    arrivals. on_again: called at each further arrival.
    """

    __slots__ = ("answer", "authenticator", "first", "gap", "key", "last", "on_again", "replaced", "signed")

    def __init__(self, key: Key, authenticator: bytes, now: float = 0.0, *, signed: bool = True) -> None:
        self.key = key
        self.authenticator = authenticator
        self.signed = signed
        self.answer: bytes | None = None
        self.replaced = False
        self.first = self.last = now
        self.gap = 0.0
        self.on_again: Callable[[], None] | None = None

    def again(self, now: float) -> None:
        """It came once more."""
        self.gap = now - self.last
        self.last = now
        if self.on_again is not None:
            self.on_again()

    def follows(self, before: "Entry") -> None:
        """It is the same login as another request, which came before it."""
        self.first = before.first
        self.gap = self.last - before.last


class Duplicates:
    """The requests of the last `window_s`..2 x `window_s` seconds at one socket, and those that are parked."""

    def __init__(self, window_s: float, *, max_entries: int = 131_072) -> None:
        self._window_s = window_s
        self._max_entries = max_entries
        self._turn_at = 0.0
        self._fresh: dict[Key, Entry] = {}
        self._stale: dict[Key, Entry] = {}
        self._parked: dict[Key, Entry] = {}

    def note(
        self, source: Source, identifier: int, authenticator: bytes, *, signed: bool, now: float
    ) -> tuple[Entry, bool]:
        """Return the entry of a request, and whether the request is new. now: seconds of a monotonic clock.

        An unsigned copy of a signed request is a duplicate. It does not count as an arrival of the signed one.
        """
        if now >= self._turn_at:
            self._turn(now)
        key: Key = (source, identifier)
        entry = self._find(key)
        if not signed:
            if entry is not None and entry.authenticator == authenticator:
                return entry, False
            key = (source, identifier, authenticator)
            entry = self._find(key)
        if entry is not None:
            if entry.authenticator == authenticator:
                entry.again(now)
                return entry, False
            entry.replaced = True
        if len(self._fresh) >= self._max_entries:
            self._turn(now)
        entry = self._fresh[key] = Entry(key, authenticator, now, signed=signed)
        return entry, True

    def _find(self, key: Key) -> Entry | None:
        return self._fresh.get(key) or self._stale.get(key) or self._parked.get(key)

    def _turn(self, now: float) -> None:
        """Begin a new window: where the last one ended, or now, after a silence or where the table is full."""
        ended = self._turn_at
        silent = now >= ended + self._window_s
        self._stale, self._fresh = ({} if silent else self._fresh), {}
        self._turn_at = (ended if ended <= now and not silent else now) + self._window_s

    def __len__(self) -> int:
        """How many requests are known."""
        return len(self._fresh) + len(self._stale) + len(self._parked)

    def forget(self, entry: Entry) -> None:
        """A request that gets no answer: its retransmit is new."""
        for entries in (self._fresh, self._stale, self._parked):
            if entries.get(entry.key) is entry:
                del entries[entry.key]

    def park(self, entry: Entry) -> None:
        """Know a request for as long as it waits, however long that is."""
        self._parked[entry.key] = entry

    def unpark(self, entry: Entry, *, now: float) -> None:
        """It waits no more: from here on its answer is known for as long as any other's."""
        if self._parked.get(entry.key) is entry:
            del self._parked[entry.key]
            if now >= self._turn_at:
                self._turn(now)
            if not entry.replaced:
                self._fresh[entry.key] = entry

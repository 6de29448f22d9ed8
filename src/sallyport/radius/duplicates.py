"""Duplicate detection by source and identifier (RFC 5080 section 2.2.2).

A request is the same when source address, port, identifier and authenticator are. While the first runs, its duplicates
are dropped; once it is answered they get the same octets; the same source and identifier with a new authenticator
replaces the old entry. Entries live between one and two windows: two dictionaries take turns, so that nothing is ever
searched for what has expired, and a flood cannot make them grow past their bound. A request that waits for longer than
that (for a second factor) is parked, and stays known for as long as it waits.
"""

from collections.abc import Callable

Source = tuple[str, int] | tuple[str, int, bytes]
"""The peer's address and port; and, where a socket has many addresses, which of them it sent to, in the kernel's form:
a NAS that asks two of our addresses counts its identifiers for each."""
Key = tuple[Source, int]


class Entry:
    """One request: `answer` is None until it has one. replaced: a newer request took its place, nobody waits for it.

    first, last: when it came first and last, in seconds of the monotonic clock; gap: between its last two arrivals.
    on_again: hears of each further arrival.
    """

    __slots__ = ("answer", "authenticator", "first", "gap", "key", "last", "on_again", "replaced")

    def __init__(self, key: Key, authenticator: bytes, now: float = 0.0) -> None:
        self.key = key
        self.authenticator = authenticator
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

    def note(self, source: Source, identifier: int, authenticator: bytes, *, now: float) -> tuple[Entry, bool]:
        """The entry of a request, and whether the request is new. now: seconds of a monotonic clock."""
        if now >= self._turn_at:
            self._turn(now)
        key = (source, identifier)
        entry = self._fresh.get(key) or self._stale.get(key) or self._parked.get(key)
        if entry is not None:
            if entry.authenticator == authenticator:
                entry.again(now)
                return entry, False
            entry.replaced = True
        if len(self._fresh) >= self._max_entries:
            self._turn(now)
        entry = self._fresh[key] = Entry(key, authenticator, now)
        return entry, True

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

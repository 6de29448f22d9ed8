"""Duplicate detection by source and identifier (RFC 5080 section 2.2.2).

Two requests are the same if source address, port, identifier and authenticator are equal. Duplicates are dropped while
the first one is pending. They get the same octets once it is answered.

A signed request with a new authenticator replaces the signed request that had its source and identifier before. An
unsigned request can be spoofed, so it replaces nothing: the table keeps it beside the others, by its authenticator.

Entries live between one and two windows. Two dictionaries of each owner alternate, so that expired entries need no
search. If all owners together exceed the limit, the window of the owner with the most entries ends early: a flood does
not shorten another owner's window. A request that waits longer, for a second factor, is parked and stays known until
its answer.
"""

from collections.abc import Callable

Source = tuple[str, int] | tuple[str, int, bytes]
"""The peer's address and port; and, where a socket has many addresses, which of them it sent to, in the kernel's form:
a NAS that asks two of our addresses counts its identifiers for each."""
Key = tuple[Source, int] | tuple[Source, int, bytes]
"""Source and identifier; of an unsigned request also the authenticator."""


class Entry:
    """One request. owner: the tenant of its client. answer: None while it is pending. replaced: a newer request took
    its place, so that the NAS no longer waits for its answer.

    first, last: time of the first and of the last arrival, in seconds of the monotonic clock. gap: between the last two
    arrivals. on_again: called at each further arrival.
    """

    __slots__ = ("answer", "authenticator", "first", "gap", "key", "last", "on_again", "owner", "replaced", "signed")

    def __init__(
        self, key: Key, authenticator: bytes, now: float = 0.0, *, signed: bool = True, owner: int = 0
    ) -> None:
        self.key = key
        self.owner = owner
        self.authenticator = authenticator
        self.signed = signed
        self.answer: bytes | None = None
        self.replaced = False
        self.first = self.last = now
        self.gap = 0.0
        self.on_again: Callable[[], None] | None = None

    def again(self, now: float) -> None:
        """Record another arrival."""
        self.gap = now - self.last
        self.last = now
        if self.on_again is not None:
            self.on_again()

    def follows(self, before: "Entry") -> None:
        """Mark that another, earlier request is the same login."""
        self.first = before.first
        self.gap = self.last - before.last


class _Window:
    """The requests of one owner, of this window and of the one before."""

    __slots__ = ("fresh", "stale")

    def __init__(self) -> None:
        self.fresh: dict[Key, Entry] = {}
        self.stale: dict[Key, Entry] = {}

    def turn(self) -> None:
        """Start a new window."""
        self.stale, self.fresh = self.fresh, {}


class Duplicates:
    """The requests of the last `window_s` to 2 x `window_s` seconds at one socket, and the parked ones.

    max_entries: the most requests of one window, of all owners together. The table keeps at most three times as many.
    """

    def __init__(self, window_s: float, *, max_entries: int = 131_072) -> None:
        self._window_s = window_s
        self._max_entries = max_entries
        self._turn_at = 0.0
        self._windows: dict[int, _Window] = {}
        self._noted = 0  # requests of this window, with those that were forgotten
        self._parked: dict[Key, Entry] = {}

    def note(
        self, source: Source, identifier: int, authenticator: bytes, *, signed: bool, now: float, owner: int
    ) -> tuple[Entry, bool]:
        """Return the entry of a request, and whether the request is new. now: seconds of a monotonic clock. owner: the
        tenant of its client.

        An unsigned copy of a signed request is a duplicate. It does not count as an arrival of the signed one.
        """
        if now >= self._turn_at:
            self._turn(now)
        window = self._windows.get(owner) or self._windows.setdefault(owner, _Window())
        key: Key = (source, identifier)
        entry = window.fresh.get(key) or window.stale.get(key) or self._parked.get(key)
        if not signed:
            if entry is not None and entry.authenticator == authenticator:
                return entry, False
            key = (source, identifier, authenticator)
            entry = window.fresh.get(key) or window.stale.get(key) or self._parked.get(key)
        if entry is not None:
            if entry.authenticator == authenticator:
                entry.again(now)
                return entry, False
            entry.replaced = True
        if self._noted >= self._max_entries:
            self._make_room()
        self._noted += 1
        entry = window.fresh[key] = Entry(key, authenticator, now, signed=signed, owner=owner)
        return entry, True

    def _turn(self, now: float) -> None:
        """Start a new window for all owners: at the end of the last one, or now after a pause."""
        silent = now >= self._turn_at + self._window_s
        if silent:
            self._windows.clear()
        for owner, window in tuple(self._windows.items()):
            window.turn()
            if not window.stale:
                del self._windows[owner]
        self._noted = 0
        self._turn_at = (now if silent else self._turn_at) + self._window_s

    def _make_room(self) -> None:
        """End the window of the owner with the most requests in it."""
        windows = self._windows.values()
        max(windows, key=lambda window: len(window.fresh)).turn()
        self._noted = sum(len(window.fresh) for window in windows)

    def __len__(self) -> int:
        """Return the number of known requests."""
        return sum(len(each.fresh) + len(each.stale) for each in self._windows.values()) + len(self._parked)

    def forget(self, entry: Entry) -> None:
        """Forget a request that gets no answer, so that its retransmission is new."""
        window = self._windows.get(entry.owner)
        for entries in (self._parked,) if window is None else (window.fresh, window.stale, self._parked):
            if entries.get(entry.key) is entry:
                del entries[entry.key]

    def park(self, entry: Entry) -> None:
        """Park a request: it stays known until `unpark`."""
        self._parked[entry.key] = entry

    def unpark(self, entry: Entry, *, now: float) -> None:
        """End the parking of a request: from now on its answer is kept as long as every other answer."""
        if self._parked.get(entry.key) is entry:
            del self._parked[entry.key]
            if now >= self._turn_at:
                self._turn(now)
            if not entry.replaced:
                self._windows.setdefault(entry.owner, _Window()).fresh[entry.key] = entry

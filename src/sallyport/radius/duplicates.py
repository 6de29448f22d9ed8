"""Duplicate detection by source and identifier (RFC 5080 section 2.2.2).

Two requests are duplicates if source address, port, identifier and authenticator are equal. While the first request is
pending, its duplicates are dropped. After the service has answered the request, each duplicate gets the same octets as
answer.

A signed request contains a Message-Authenticator. If a signed request has the source and identifier of an earlier
signed request, but another authenticator, it replaces the earlier request. An unsigned request can be spoofed, so it
replaces no other request: its key in the table also contains its authenticator.

An entry is kept for one to two windows of time. Each owner has two dictionaries, one for the current window and one for
the window before. At the end of a window the older dictionary is dropped, so there is no search for expired entries. If
all owners together exceed the limit, the window of the owner with the most entries ends early. So a flood does not
shorten another owner's window. A request that waits for a second factor can be parked. Its entry is then kept until the
request is answered.
"""

from collections.abc import Callable

Source = tuple[str, int] | tuple[str, int, bytes]
"""The peer's address and port. If a socket receives packets for several local addresses, the source also contains
the local address, in the kernel's form. The reason is that a NAS counts the identifiers separately for each address."""
Key = tuple[Source, int] | tuple[Source, int, bytes]
"""The key of a request: source and identifier, and for an unsigned request also the authenticator."""


class Entry:
    """A received request, and the answer to it.

    owner: the tenant of the RADIUS client. answer: the answer in octets; None while the request is pending. replaced:
    whether a newer request has replaced this request. If so, the NAS no longer waits for the answer to this request.
    first, last: the times of the first and the last arrival, in seconds of the monotonic clock. gap: the seconds
    between the last two arrivals. on_again: called each time a duplicate arrives.
    """

    __slots__ = ("answer", "authenticator", "first", "gap", "key", "last", "on_again", "owner", "replaced", "signed")

    def __init__(self, key: Key, authenticator: bytes, now: float = 0.0) -> None:
        self.key = key
        self.owner = 0
        self.authenticator = authenticator
        self.signed = True
        self.answer: bytes | None = None
        self.replaced = False
        self.first = self.last = now
        self.gap = 0.0
        self.on_again: Callable[[], None] | None = None

    def again(self, now: float) -> None:
        """Record that a duplicate of this request has arrived."""
        self.gap = now - self.last
        self.last = now
        if self.on_again is not None:
            self.on_again()

    def follows(self, before: "Entry") -> None:
        """Record that this request continues the login of an earlier request. `first` and `gap` are then computed from
        the earlier request."""
        self.first = before.first
        self.gap = self.last - before.last


class _Window:
    """The requests of one owner in the current window (`fresh`) and in the window before (`stale`)."""

    __slots__ = ("fresh", "stale")

    def __init__(self) -> None:
        self.fresh: dict[Key, Entry] = {}
        self.stale: dict[Key, Entry] = {}

    def turn(self) -> None:
        """Start a new window."""
        self.stale, self.fresh = self.fresh, {}


class Duplicates:
    """The recent requests at one socket. A request is kept for `window_s` to 2 x `window_s` seconds, or while it is
    parked.

    max_entries: the maximum number of requests in one window, for all owners together. The table has at most three
    times this number of entries.
    """

    def __init__(self, window_s: float, *, max_entries: int = 131_072) -> None:
        self._window_s = window_s
        self._max_entries = max_entries
        self._turn_at = 0.0
        self._windows: dict[int, _Window] = {}
        self._noted = 0  # entries in the current windows of all owners
        self._parked: dict[Key, Entry] = {}

    def note(
        self, source: Source, identifier: int, authenticator: bytes, *, signed: bool, now: float, owner: int
    ) -> tuple[Entry, bool]:
        """Return the entry of a request, and whether the request is new (not a duplicate).

        now: the time in seconds of a monotonic clock. owner: the tenant of the RADIUS client. An unsigned copy of a
        signed request is a duplicate, but does not count as an arrival.
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
        if key not in window.fresh:  # a NAS with few ports replaces its requests, which needs no room
            if self._noted >= self._max_entries:
                self._make_room()
            self._noted += 1
        entry = window.fresh[key] = Entry(key, authenticator, now)
        entry.signed, entry.owner = signed, owner  # named arguments of a class cost a dictionary
        return entry, True

    def _turn(self, now: float) -> None:
        """Start a new window for all owners. The new window begins when the last window ended. If that was more than a
        whole window ago, the new window begins now, and all entries of the old windows are dropped."""
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
        """Start a new window for the owner with the most requests in the current window."""
        windows = self._windows.values()
        max(windows, key=lambda window: len(window.fresh)).turn()
        self._noted = sum(len(window.fresh) for window in windows)

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(len(each.fresh) + len(each.stale) for each in self._windows.values()) + len(self._parked)

    def forget(self, entry: Entry) -> None:
        """Remove a request that gets no answer, so that its retransmission counts as a new request."""
        window = self._windows.get(entry.owner)
        if window is not None and window.fresh.get(entry.key) is entry:
            self._noted -= 1
        for entries in (self._parked,) if window is None else (window.fresh, window.stale, self._parked):
            if entries.get(entry.key) is entry:
                del entries[entry.key]

    def park(self, entry: Entry) -> None:
        """Keep the entry of a request until `unpark` is called."""
        self._parked[entry.key] = entry

    def unpark(self, entry: Entry, *, now: float) -> None:
        """End the parking of a request. The entry of the request can expire from now on, like all other entries."""
        if self._parked.get(entry.key) is entry:
            del self._parked[entry.key]
            if now >= self._turn_at:
                self._turn(now)
            if not entry.replaced:
                window = self._windows.get(entry.owner) or self._windows.setdefault(entry.owner, _Window())
                self._noted += entry.key not in window.fresh
                window.fresh[entry.key] = entry

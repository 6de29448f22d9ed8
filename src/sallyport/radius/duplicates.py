"""Duplicate detection by source and identifier (RFC 5080 section 2.2.2).

A request is the same when source address, port, identifier and authenticator are. While the first runs, its duplicates
are dropped; once it is answered they get the same octets; the same source and identifier with a new authenticator
replaces the old entry. Answers live between one and two windows: two dictionaries take turns, so that nothing is
ever searched for what has expired, and a flood cannot make them grow past their bound.
"""

from enum import Enum, auto

Source = tuple[object, ...]
"""A socket's address of the peer, and the listener it came to where identifiers are counted apart."""


class Seen(Enum):
    """What is known of a datagram that has no answer yet."""

    NEW = auto()
    IN_FLIGHT = auto()


class Duplicates:
    """The requests in flight and the answers of the last `window_s`..2 x `window_s` seconds."""

    def __init__(self, window_s: float, *, max_answers: int = 131_072) -> None:
        self._window_s = window_s
        self._max_answers = max_answers
        self._turn_at = 0.0
        self._running: dict[tuple[Source, int], bytes] = {}
        self._fresh: dict[tuple[Source, int], tuple[bytes, bytes]] = {}
        self._stale: dict[tuple[Source, int], tuple[bytes, bytes]] = {}

    def look(self, source: Source, identifier: int, authenticator: bytes, *, now: float) -> bytes | Seen:
        """The answer of a duplicate, or what is known. A new request is in flight from here on. now: seconds."""
        key = (source, identifier)
        answer = self._fresh.get(key)
        alive = now < self._turn_at + self._window_s
        if answer is None and now < self._turn_at:
            answer = self._stale.get(key)
        if alive and answer is not None and answer[0] == authenticator:
            return answer[1]
        if self._running.get(key) == authenticator:
            return Seen.IN_FLIGHT
        self._running[key] = authenticator
        return Seen.NEW

    def answered(self, source: Source, identifier: int, authenticator: bytes, answer: bytes, *, now: float) -> None:
        """Keep the octets that a request was, or is about to be, answered with."""
        if now >= self._turn_at or len(self._fresh) >= self._max_answers:
            self._stale = {} if now >= self._turn_at + self._window_s else self._fresh
            self._fresh = {}
            self._turn_at = now + self._window_s
        key = (source, identifier)
        self._fresh[key] = (authenticator, answer)
        if self._running.get(key) == authenticator:
            del self._running[key]

    def dropped(self, source: Source, identifier: int, authenticator: bytes) -> None:
        """Forget a request that gets no answer; a retransmit is new."""
        key = (source, identifier)
        if self._running.get(key) == authenticator:
            del self._running[key]

    def replaced(self, source: Source, identifier: int, authenticator: bytes) -> bool:
        """Whether a request that was in flight has been replaced by a newer one of its source and identifier."""
        return self._running.get((source, identifier)) != authenticator

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._running)

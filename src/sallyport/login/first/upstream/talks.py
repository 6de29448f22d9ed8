"""Which home server a conversation is with: it alone knows the State that its challenge carried (RFC 2865 section
5.24). Two dictionaries take turns, so that nothing is searched for what has expired."""

from typing import Final, Generic, TypeVar

TALK_S: Final = 120.0
MAX_TALKS: Final = 65_536

Server = TypeVar("Server")


class Talks(Generic[Server]):
    """The conversations of the last TALK_S..2 x TALK_S seconds."""

    def __init__(self) -> None:
        self._turn_at = 0.0
        self._fresh: dict[bytes, Server] = {}
        self._stale: dict[bytes, Server] = {}

    def note(self, state: bytes, server: Server, now: float) -> None:
        """A server has sent a challenge."""
        if now >= self._turn_at or len(self._fresh) >= MAX_TALKS:
            self._stale = {} if now >= self._turn_at + TALK_S else self._fresh
            self._fresh = {}
            self._turn_at = now + TALK_S
        self._fresh[state] = server

    def partner(self, state: bytes) -> Server | None:
        """Who has sent this State; None where nobody knows."""
        return self._fresh.get(state) or self._stale.get(state)

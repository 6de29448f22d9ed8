"""All pending conversations, by the State that names each; bounded, and fair among tenants and their RADIUS clients."""

from collections.abc import Callable
from secrets import token_bytes
from typing import Final, Generic, TypeVar

from sallyport.base.bounded import ExpiringMap

MOST: Final = 4096
AGE_S: Final = 60.0
STATE_OCTETS: Final = 16

_Talk = TypeVar("_Talk")


class Conversations(Generic[_Talk]):
    """Conversations, or what a caller keeps of each, by State. In a full table, the oldest of the busiest client of the
    busiest tenant makes room: a client that begins thousands and leaves them displaces its own.

    most: how many are pending. age_s: how long one waits for its client. left: called with each that has waited so
    long. now: seconds of a monotonic clock.
    """

    def __init__(
        self, most: int = MOST, age_s: float = AGE_S, *, left: Callable[[_Talk], None] = lambda _talk: None
    ) -> None:
        self._left = left
        self._talks = ExpiringMap[bytes, tuple[int, int, _Talk]](most, age_s)

    def __len__(self) -> int:
        return len(self._talks)

    def add(self, tenant_id: int, client_id: int, talk: _Talk, *, now: float) -> bytes:
        """Keep a conversation of a RADIUS client. Return its State, 16 random octets."""
        self.purge(now=now)
        state = token_bytes(STATE_OCTETS)
        self._talks.put(state, (tenant_id, client_id, talk), tenant_id, client_id, now=now)
        return state

    def find(self, client_id: int, state: bytes, *, now: float) -> _Talk | None:
        """The conversation that a State names; None: it is unknown, over, too old or another client's."""
        self.purge(now=now)
        known = self._talks.get(state, now=now)
        if known is None or known[1] != client_id:
            return None
        self._talks.put(state, known, *known[:2], now=now)
        return known[2]

    def end(self, state: bytes) -> None:
        """It is over."""
        self._talks.pop(state)

    def purge(self, *, now: float) -> None:
        """Forget those that are too old."""
        for _, _, talk in self._talks.expire(now=now):
            self._left(talk)

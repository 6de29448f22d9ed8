"""All conversations that go on, by the State that names each; bounded, and fair among RADIUS clients."""

from collections import OrderedDict
from collections.abc import Callable
from secrets import token_bytes
from typing import Final, Generic, TypeVar

MOST: Final = 4096
AGE_S: Final = 60.0
STATE_OCTETS: Final = 16

_Talk = TypeVar("_Talk")


class Conversations(Generic[_Talk]):
    """Conversations, or what a caller keeps of each, by State. Where there are too many, the oldest of the client with
    the most makes room, so that nobody who begins and leaves thousands pushes out anybody else's.

    most: how many go on. age_s: how long one waits for its client. left: hears of each that has waited so long. now:
    seconds of a monotonic clock.
    """

    def __init__(
        self, most: int = MOST, age_s: float = AGE_S, *, left: Callable[[_Talk], None] = lambda _talk: None
    ) -> None:
        self._left = left
        self._most = most
        self._age_s = age_s
        self._count = 0
        self._of: dict[int, OrderedDict[bytes, tuple[_Talk, float]]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, client: int, talk: _Talk, *, now: float) -> bytes:
        """Keep a conversation of a RADIUS client. Returns its State, 16 octets that nobody can guess."""
        own = self._of.setdefault(client, OrderedDict())
        self._drop_old(client, own, now)
        if self._count >= self._most:
            self.purge(now=now)
        if self._count >= self._most:
            busiest = max(self._of, key=lambda each: len(self._of[each]))
            self._drop(busiest, next(iter(self._of[busiest])))
        state = token_bytes(STATE_OCTETS)
        self._of.setdefault(client, own)[state] = talk, now + self._age_s
        self._count += 1
        return state

    def find(self, client: int, state: bytes, *, now: float) -> _Talk | None:
        """The conversation that a State names; None: it is unknown, over, too old or another client's."""
        own = self._of.get(client)
        known = None if own is None else own.get(state)
        if own is None or known is None or known[1] <= now:
            return None
        own[state] = known[0], now + self._age_s
        own.move_to_end(state)
        return known[0]

    def end(self, client: int, state: bytes) -> None:
        """It is over."""
        if client in self._of and state in self._of[client]:
            self._drop(client, state)

    def purge(self, *, now: float) -> None:
        """Forget those that are too old."""
        for client in list(self._of):
            self._drop_old(client, self._of[client], now)

    def _drop_old(self, client: int, own: OrderedDict[bytes, tuple[_Talk, float]], now: float) -> None:
        while own:
            state, (talk, until) = next(iter(own.items()))
            if until > now:
                return
            self._drop(client, state)
            self._left(talk)

    def _drop(self, client: int, state: bytes) -> None:
        own = self._of[client]
        del own[state]
        self._count -= 1
        if not own:
            del self._of[client]

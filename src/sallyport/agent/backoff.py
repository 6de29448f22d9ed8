"""How long to wait after a failure: longer each time, and never all agents at once."""

import random
from collections.abc import Callable
from typing import Final

FIRST_S: Final = 1.0
MOST_S: Final = 300.0


class BackOff:
    """Waits that double from failure to failure, each cut by up to half at random (`chance` gives 0 to 1)."""

    def __init__(
        self, *, first_s: float = FIRST_S, most_s: float = MOST_S, chance: Callable[[], float] = random.random
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._chance = chance
        self._wait_s = first_s

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds to wait now. at_least_s: what the service asks for by Retry-After."""
        wait_s = self._wait_s * (1 - self._chance() / 2)
        self._wait_s = min(self._most_s, 2 * self._wait_s)
        return max(wait_s, min(at_least_s, self._most_s))

    def worked(self) -> None:
        """Begin anew."""
        self._wait_s = self._first_s

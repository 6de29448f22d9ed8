"""When logins hear that an import has changed somebody: what is held of the domain in memory is dropped then, and each
login asks the store again. After every transaction of an import that would be nearly all of them; so they hear of the
first at once, of those that follow once a second, and of the last when the import rests or ends."""

from collections.abc import Callable
from typing import Final

import trio

EVERY_S: Final = 1.0


class Telling:
    """Tells of changes. tell: called with a domain."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._due: dict[int, float] = {}
        self._untold: set[int] = set()

    def changed(self, domain_id: int) -> None:
        """Something has changed in a domain; `rest` must follow."""
        self._untold.add(domain_id)
        now = trio.current_time()
        if now >= self._due.get(domain_id, now):
            self._due[domain_id] = now + EVERY_S
            self._tell_now(domain_id)

    def rest(self, domain_id: int) -> None:
        """Nothing more changes for now."""
        self._due.pop(domain_id, None)
        self._tell_now(domain_id)

    def _tell_now(self, domain_id: int) -> None:
        if domain_id in self._untold:
            self._untold.discard(domain_id)
            self._tell(domain_id)

"""Right answers, remembered for a short time, so that a device that asks every minute does not trouble the directory.

A password is kept as a keyed hash alone, under a key that lives no longer than the memory, which a change of the
configuration ends.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from secrets import token_bytes
from typing import Final

from sallyport.base.clock import SECOND, Clock
from sallyport.login.model import Found

_LIMIT: Final = 10_000


class Memory:
    """Who had a right password of late, in one domain. seconds: how long it counts; 0 for not at all."""

    def __init__(self, seconds: int, clock: Clock) -> None:
        self._key = token_bytes(32)
        self._lasts_us = seconds * SECOND
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[int, Found]] = OrderedDict()

    def recall(self, user: str, password: str) -> Found | None:
        """What was found with this password; None where it must be asked for."""
        if not self._lasts_us:
            return None
        until, found = self._known.get(self._hash(user, password), (0, None))
        return found if self._clock() < until else None

    def keep(self, user: str, password: str, found: Found) -> None:
        """Remember a right password from now on."""
        if not self._lasts_us:
            return
        key = self._hash(user, password)
        self._known[key] = (self._clock() + self._lasts_us, found)
        self._known.move_to_end(key)
        if len(self._known) > _LIMIT:
            self._known.popitem(last=False)

    def _hash(self, user: str, password: str) -> bytes:
        # The name's hash has a fixed length, so no name and password run into one another.
        name = hashlib.sha256(user.encode()).digest()
        return hmac.digest(self._key, name + password.encode(), "sha256")

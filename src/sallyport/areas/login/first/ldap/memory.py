"""A short-lived cache of correct passwords. It spares the directory the load of devices that log in every minute.

The cache contains only keyed hashes of passwords. Each cache has a random key. A change of the configuration creates a
new, empty cache. The lifetime of an entry is measured with the monotonic clock. Otherwise, if the wall clock was set
back, an old password would be accepted again.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections import OrderedDict
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from sallyport.areas.login.login import NOTHING, Found

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMIT: Final = 10_000
MAX_TOTAL_LENGTH: Final = 4 << 20
"""Maximum total length in characters of the group and unit names in a domain's cache."""


class Memory:
    """The recent correct passwords of one domain's users.

    seconds: the lifetime of an entry; 0 disables the cache. monotonic: the monotonic clock, in seconds.
    """

    def __init__(self, seconds: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._key = token_bytes(32)
        self._lasts_s = seconds
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, tuple[float, Found]] = OrderedDict()
        self._length = 0

    def recall(self, user: str, password: str) -> Found | None:
        """Return the cached groups and units of a user, or None if the cache does not have this user with this
        password."""
        if not self._lasts_s:
            return None
        until, found = self._known.get(self._hash(user, password), (-math.inf, None))
        return found if self._monotonic() < until else None

    def keep(self, user: str, password: str, found: Found) -> None:
        """Cache a correct password with the user's groups and units."""
        if not self._lasts_s:
            return
        key = self._hash(user, password)
        self._length -= _length(self._known.pop(key, (0, NOTHING))[1])
        self._known[key] = (self._monotonic() + self._lasts_s, found)
        self._length += _length(found)
        while len(self._known) > _LIMIT or self._length > MAX_TOTAL_LENGTH:
            self._length -= _length(self._known.popitem(last=False)[1][1])

    def _hash(self, user: str, password: str) -> bytes:
        # The hash of the name has a fixed length, so two different pairs of name and password never have the same
        # input.
        name = hashlib.sha256(user.encode()).digest()
        return hmac.digest(self._key, name + password.encode(), "sha256")


def _length(found: Found) -> int:
    return sum(map(len, found.groups)) + sum(map(len, found.ous))

"""The users of TLS sessions, which are resumed without a password (RFC 9190 section 2.1.2, RFC 9427 section 4).

TLS only knows that a session exists. This table has the name of its user, under a digest of the session's secret, until
the session is too old. An unknown session proves no user: its client gets a new session with a full login. A resumption
does not extend the lifetime.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from sallyport.base.bounded import BoundedMap

MOST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Holder:
    """The user of a session, and the session's expiry in seconds of a monotonic clock. stamp: of the verdict."""

    user: bytes
    until: float
    stamp: str = ""


def digest(secret: bytes, scope: str) -> bytes:
    """Return the key of a session. secret: its master secret, or its pre-shared key in TLS 1.3. scope: the scope of the
    user's name; in another scope the session is unknown."""
    return sha256(scope.encode() + b"\0" + secret).digest()


class Resumptions:
    """The users of sessions. lifetime_s: seconds in which a login can be resumed. most: the number of sessions that are
    kept; each owner has a share."""

    def __init__(self, lifetime_s: float, most: int = MOST) -> None:
        self._lifetime_s = lifetime_s
        self._holders = BoundedMap[bytes, Holder](most)

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, user: bytes, stamp: str = "", *, most_s: float = math.inf, now: float) -> Holder:
        """Return the holder after a login. most_s: the longest lifetime."""
        return Holder(user, now + min(self._lifetime_s, most_s), stamp)

    def keep(self, sessions: Iterable[bytes], holder: Holder, owner: int) -> None:
        """Store the user of these sessions, by the digests of the sessions. owner: the tenant whose share they count
        in."""
        if self._lifetime_s <= 0:
            return
        for each in sessions:
            self._holders.put(each, holder, owner)

    def find(self, session: bytes, *, now: float) -> Holder | None:
        """Return the holder of a session; None if it is unknown or expired."""
        holder = self._holders.get(session)
        return holder if holder is not None and holder.until > now else None

    def forget(self, sessions: Iterable[bytes]) -> None:
        """Forget sessions, so that no client can resume them."""
        for each in sessions:
            self._holders.pop(each)

"""Whose a TLS session is: what lets a user go on without a password (RFC 9190 section 2.1.2, RFC 9427 section 4).

TLS itself only tells that a session is known. The name of who logged in with it is kept here, under a digest of the
session's secret, until it is too old. A session that is not here is no proof of anybody: its client gets a new one, and
its user logs in anew. Going on in a session does not make it younger.
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
    """Who logged in with a session, and until when that holds: seconds of a monotonic clock. stamp: of the verdict."""

    user: bytes
    until: float
    stamp: str = ""


def digest(secret: bytes, scope: str) -> bytes:
    """What a session is kept under. secret: its master secret, or its pre-shared key in TLS 1.3. scope: where its user
    is who the name says; elsewhere the session is nobody's."""
    return sha256(scope.encode() + b"\0" + secret).digest()


class Resumptions:
    """The users of sessions. lifetime_s: how long a login can be resumed. most: how many sessions are kept; each
    owner has a share."""

    def __init__(self, lifetime_s: float, most: int = MOST) -> None:
        self._lifetime_s = lifetime_s
        self._holders = BoundedMap[bytes, Holder](most)

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, user: bytes, stamp: str = "", *, most_s: float = math.inf, now: float) -> Holder:
        """Somebody who has just logged in, with what is good for so long at most."""
        return Holder(user, now + min(self._lifetime_s, most_s), stamp)

    def keep(self, sessions: Iterable[bytes], holder: Holder, owner: int) -> None:
        """Remember the holder of these sessions, by their digests. owner: the tenant in whose share they count."""
        if self._lifetime_s <= 0:
            return
        for each in sessions:
            self._holders.put(each, holder, owner)

    def find(self, session: bytes, *, now: float) -> Holder | None:
        """Who logged in with a session; None: it is unknown or too old."""
        holder = self._holders.get(session)
        return holder if holder is not None and holder.until > now else None

    def forget(self, sessions: Iterable[bytes]) -> None:
        """These must not be resumed."""
        for each in sessions:
            self._holders.pop(each)

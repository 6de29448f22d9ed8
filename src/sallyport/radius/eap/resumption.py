"""The users of TLS sessions, so that a session can be resumed without a password (RFC 9190 section 2.1.2, RFC 9427
section 4).

TLS itself stores no user with a session. This table stores the user's name until the session expires. The key in the
table is a digest of the session's secret. If a session is not in the table, the client must do a full login. A
resumption does not extend the lifetime of the session.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cryptography import x509

from sallyport.base.bounded import BoundedMap

MAX_SESSIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class SessionUser:
    """The user of a TLS session. until: the time at which the session expires, in seconds of a monotonic clock. stamp:
    the stamp from the verdict on the full login. inner: the inner method of the full login. issuers: the issuers in the
    verified chain of the client's certificate, if the domain has authorities of its own; TLS does not verify the chain
    again."""

    user: bytes
    until: float
    stamp: str = ""
    inner: str = ""
    issuers: tuple[x509.Certificate, ...] = field(default=(), compare=False, repr=False)


def digest(secret: bytes, scope: str) -> bytes:
    """Return the key of a session in the table.

    secret: the master secret; in TLS 1.3 the pre-shared key. scope: the name space of the user name (a domain and its
    first factor). The key depends on the scope, so a session cannot be found in another scope.
    """
    return sha256(scope.encode() + b"\0" + secret).digest()


class Resumptions:
    """The table of TLS sessions and their users.

    lifetime_s: for how many seconds after a full login its sessions can be resumed. most: the maximum number of
    sessions; each tenant has a share of the table.
    """

    def __init__(self, lifetime_s: float, most: int = MAX_SESSIONS) -> None:
        self._lifetime_s = lifetime_s
        self._holders = BoundedMap[bytes, SessionUser](most)

    def __len__(self) -> int:
        return len(self._holders)

    def holder(
        self,
        user: bytes,
        stamp: str = "",
        inner: str = "",
        *,
        issuers: tuple[x509.Certificate, ...] = (),
        most_s: float = math.inf,
        now: float,
    ) -> SessionUser:
        """Return the Holder that the caller stores for the sessions of a full login. issuers: see `SessionUser`.
        most_s: the maximum lifetime of the sessions in seconds."""
        return SessionUser(user, now + min(self._lifetime_s, most_s), stamp, inner, issuers)

    def keep(self, sessions: Iterable[bytes], holder: SessionUser, owner: int) -> None:
        """Store the user of the sessions. sessions: the digests of the sessions. owner: a tenant. The sessions are
        stored in this tenant's share of the table."""
        if self._lifetime_s <= 0:
            return
        for each in sessions:
            self._holders.put(each, holder, owner)

    def find(self, session: bytes, *, now: float) -> SessionUser | None:
        """Return the user of a session. Return None if the session is unknown or has expired. session: the digest of
        the session."""
        holder = self._holders.get(session)
        return holder if holder is not None and holder.until > now else None

    def forget(self, sessions: Iterable[bytes]) -> None:
        """Remove sessions, so that no client can resume them."""
        for each in sessions:
            self._holders.pop(each)

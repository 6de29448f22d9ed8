"""What a request and its answer look like on the other hop (RFC 2865 sections 2.3 and 5.33).

All attributes go along as they are and in order, but for those that belong to a hop: Message-Authenticator, what is
hidden with the hop's secret, and the Proxy-State that we add, which comes back and stays here.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_bytes
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    MESSAGE_AUTHENTICATOR,
    PROXY_STATE,
    USER_NAME,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
    push_attribute,
)
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.packet import ACCESS_REQUEST, MAX_LENGTH, MIN_LENGTH, Request, encode_request
from sallyport.radius.password import hide_password
from sallyport.radius.salted import Hiding, rehide

_CHANGED: Final = frozenset({MESSAGE_AUTHENTICATOR, USER_PASSWORD})
_CHANGED_WITH_NAME: Final = _CHANGED | {USER_NAME}
_OF_THE_HOP: Final = frozenset({MESSAGE_AUTHENTICATOR, PROXY_STATE})


class Forward:
    """A request to pass on. password: in clear, of a request that has one. name: to send instead of the one that came.
    mark: our Proxy-State."""

    __slots__ = ("_after", "_before", "_password")

    def __init__(self, request: Request, *, password: bytes | None, name: bytes | None, mark: bytes) -> None:
        """PacketError: with what is added it is too long."""
        self._password = password
        self._before, after = _around_password(request, name)
        self._after = after + push_attribute(PROXY_STATE, mark)
        if CHAP_PASSWORD in request.first and CHAP_CHALLENGE not in request.first:
            # RFC 2865 section 5.3: the authenticator was the challenge, and on the other hop it is another one.
            self._after = push_attribute(CHAP_CHALLENGE, request.authenticator) + self._after
        length = MIN_LENGTH + 18 + len(self._before) + len(self._after)
        length += 0 if password is None else 2 + max(16, (len(password) + 15) // 16 * 16)
        if length > MAX_LENGTH:
            raise PacketError(f"passed on, it would have {length} octets")

    def packet(self, identifier: int, secret: SharedSecret) -> bytes:
        """The request to a home server, with an authenticator of its own."""
        authenticator = token_bytes(16)
        body = self._before + self._after
        if self._password is not None:
            hidden = hide_password(self._password, secret, authenticator)
            body = self._before + push_attribute(USER_PASSWORD, hidden) + self._after
        return encode_request(ACCESS_REQUEST, identifier, secret, body, authenticator=authenticator)


def _around_password(request: Request, name: bytes | None) -> tuple[bytes, bytes]:
    """The attributes to pass on, before and behind the place of the password; all are behind it where there is none.
    name: of the user, instead of the one that came."""
    data = request.data
    length, at, begun = len(data), MIN_LENGTH, MIN_LENGTH
    changed = _CHANGED if name is None else _CHANGED_WITH_NAME
    before, parts = b"", list[bytes]()
    while at < length:
        kind = data[at]
        end = at + data[at + 1]
        if kind in changed:
            parts.append(data[begun:at])
            begun = end
            if kind == USER_NAME:
                parts.append(push_attribute(USER_NAME, name or b""))
            elif kind == USER_PASSWORD and not before:
                before, parts = b"".join(parts), []
        at = end
    return before, b"".join((*parts, data[begun:]))


class Back:
    """Makes the attributes of an answer those of ours. places: (vendor, type) of what is hidden in answers."""

    def __init__(self, places: Mapping[tuple[int, int], int]) -> None:
        self._places = places
        self._kinds = frozenset({VENDOR_SPECIFIC, *(kind for vendor, kind in places if not vendor)})

    def attributes(
        self,
        answer: bytes,
        first: Mapping[int, bytes],
        received: tuple[SharedSecret, bytes],
        sent: tuple[SharedSecret, bytes],
    ) -> bytes:
        """The attributes of a proved answer in octets, for the NAS.

        first: the answer's first value of each type. received, sent: secret and request authenticator of the hop that
        it came by, and of the one to the NAS. PacketError: what is hidden does not open.
        """
        kept = without_hop(answer)
        return kept if self._kinds.isdisjoint(first) else rehide(kept, Hiding(*received), Hiding(*sent), self._places)


def without_hop(packet: bytes) -> bytes:
    """A packet's attributes in octets, without those that belong to the hop. packet: checked; padding may follow."""
    end, at = int.from_bytes(packet[2:4]), MIN_LENGTH
    parts: list[bytes] = []
    while at < end:
        size = packet[at + 1]
        if packet[at] not in _OF_THE_HOP:
            parts.append(packet[at : at + size])
        at += size
    return b"".join(parts)

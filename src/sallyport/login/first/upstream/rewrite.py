"""The conversion of a request and its answer between the two hops of a proxy (RFC 2865 sections 2.3 and 5.33).

All attributes are forwarded unchanged, except those that belong to one hop: Message-Authenticator, attributes that are
encrypted with the hop's secret, and the Proxy-State that this service adds and later removes from the answer.
Attributes of one type keep their order; the order of different types does not matter (RFC 2865 section 5). An
Access-Accept may contain another User-Name than the request (RFC 2865 section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_bytes
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.base.text import fold
from sallyport.login.login import Login
from sallyport.policy.rules.match import station_key
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
from sallyport.radius.packet import (
    ACCESS_REQUEST,
    MAX_LENGTH,
    MIN_LENGTH,
    Reply,
    Request,
    SharedSecret,
    as_name,
    encode_request,
)
from sallyport.radius.password import Method, hide_password
from sallyport.radius.salted import Hiding, rehide

_CHANGED: Final = frozenset({MESSAGE_AUTHENTICATOR, USER_PASSWORD})
_CHANGED_WITH_NAME: Final = _CHANGED | {USER_NAME}
_OF_THE_HOP: Final = frozenset({MESSAGE_AUTHENTICATOR, PROXY_STATE})


class Forward:
    """A request to forward. password: the PAP password in clear; None if there is none. name: the User-Name that
    replaces the received one; None if it is not replaced. mark: the Proxy-State of this service."""

    __slots__ = ("_attributes", "_password")

    def __init__(self, request: Request, *, password: bytes | None, name: bytes | None, mark: bytes) -> None:
        """Raises PacketError if the packet is too long with the added attributes."""
        self._password = password
        kept = request.without(_CHANGED if name is None else _CHANGED_WITH_NAME)
        attributes = kept + push_attribute(PROXY_STATE, mark)
        if name is not None:
            attributes = push_attribute(USER_NAME, name) + attributes
        if CHAP_PASSWORD in request.first and CHAP_CHALLENGE not in request.first:
            # RFC 2865 section 5.3: the authenticator was used as the CHAP challenge, and the forwarded request has
            # another one
            attributes = push_attribute(CHAP_CHALLENGE, request.authenticator) + attributes
        self._attributes = attributes
        length = MIN_LENGTH + 18 + len(attributes)
        length += 0 if password is None else 2 + max(16, (len(password) + 15) // 16 * 16)
        if length > MAX_LENGTH:
            raise PacketError(f"passed on, it would have {length} octets")

    def packet(self, identifier: int, secret: SharedSecret) -> bytes:
        """Return the request for a home server, with a new random authenticator."""
        authenticator, attributes = token_bytes(16), self._attributes
        if self._password is not None:
            hidden = hide_password(self._password, secret, authenticator)
            attributes = push_attribute(USER_PASSWORD, hidden) + attributes
        return encode_request(ACCESS_REQUEST, identifier, secret, attributes, authenticator=authenticator)


class Back:
    """The conversion of a home server's answer for the NAS. places: the encrypted attributes by (vendor, type), see
    `radius.salted`."""

    def __init__(self, places: Mapping[tuple[int, int], int]) -> None:
        self._places = places
        self._kinds = frozenset({VENDOR_SPECIFIC, *(kind for vendor, kind in places if not vendor)})

    def attributes(
        self,
        answer: Reply,
        received: tuple[SharedSecret, bytes],
        sent: tuple[SharedSecret, bytes],
    ) -> bytes:
        """Return the attributes of a verified answer in octets, for the NAS.

        received: the shared secret and request authenticator of the hop to the home server. sent: those of the hop to
        the NAS. Raises PacketError if an encrypted attribute cannot be decrypted.
        """
        kept = answer.without(_OF_THE_HOP)
        return (
            kept
            if self._kinds.isdisjoint(answer.first)
            else rehide(kept, Hiding(*received), Hiding(*sent), self._places)
        )


def split_name(name: bytes) -> tuple[bytes, bytes]:
    r"""Split a User-Name into (user, realm). It has the form `REALM\user`, or `user@realm`, where the last @ is the
    separator. Without a realm the result is (name, b"").

    Like `login.identity.split_realm`, but for octets, because a forwarded User-Name need not be text.
    """
    if b"\\" in name:
        realm, _, user = name.partition(b"\\")
        return user, realm
    if b"@" in name:
        user, _, realm = name.rpartition(b"@")
        return user, realm
    return name, b""


def accepted_user(login: Login, name: bytes) -> str | None:
    """Return the user that an Access-Accept with a User-Name admits, without realm; None if the User-Name does not fit
    the request.

    For EAP the result may be another user, because the outer identity may hide the user (RFC 3579 section 3). But the
    domain must be the same: a realm must be that of the request, or one of the domain's. Otherwise the user must be
    that of the request; the realm and the notation of a MAC address are ignored.
    """
    user, realm = map(as_name, split_name(name))
    is_same = station_key(user) == station_key(login.user)
    if login.method != Method.EAP:
        return login.user if is_same else None
    outer_realm = as_name(split_name(login.request.first.get(USER_NAME, b""))[1])
    own = () if login.domain is None else (login.domain.name, *login.domain.realms)
    if realm and fold(realm) not in map(fold, (outer_realm, *own)):
        return None
    if is_same:
        return login.user
    is_name = user.isprintable() and "\ufffd" not in user  # `as_text` replaces NUL by it
    return user if user and is_name else None

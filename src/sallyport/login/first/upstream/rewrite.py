"""A request and its answer as they look on the other hop (RFC 2865 sections 2.3 and 5.33).

All attributes are passed on as they are, except those of a hop: Message-Authenticator, attributes that are hidden with
the hop's secret, and the Proxy-State that we add, which comes back and stays here. Attributes of one type keep their
order; no other order matters (RFC 2865 section 5). An Accept may name the user itself (RFC 2865 section 5.1).
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
    """A request to forward. password: in clear, of a request that has one. name: sent in place of the received one.
    mark: our Proxy-State."""

    __slots__ = ("_attributes", "_password")

    def __init__(self, request: Request, *, password: bytes | None, name: bytes | None, mark: bytes) -> None:
        """PacketError: it is too long with the added attributes."""
        self._password = password
        kept = request.without(_CHANGED if name is None else _CHANGED_WITH_NAME)
        attributes = kept + push_attribute(PROXY_STATE, mark)
        if name is not None:
            attributes = push_attribute(USER_NAME, name) + attributes
        if CHAP_PASSWORD in request.first and CHAP_CHALLENGE not in request.first:
            # RFC 2865 section 5.3: the authenticator was the challenge, and on the other hop it is another one.
            attributes = push_attribute(CHAP_CHALLENGE, request.authenticator) + attributes
        self._attributes = attributes
        length = MIN_LENGTH + 18 + len(attributes)
        length += 0 if password is None else 2 + max(16, (len(password) + 15) // 16 * 16)
        if length > MAX_LENGTH:
            raise PacketError(f"passed on, it would have {length} octets")

    def packet(self, identifier: int, secret: SharedSecret) -> bytes:
        """Return the request to a home server, with an authenticator of its own."""
        authenticator, attributes = token_bytes(16), self._attributes
        if self._password is not None:
            hidden = hide_password(self._password, secret, authenticator)
            attributes = push_attribute(USER_PASSWORD, hidden) + attributes
        return encode_request(ACCESS_REQUEST, identifier, secret, attributes, authenticator=authenticator)


class Back:
    """Turns the attributes of an answer into ours. places: (vendor, type) of attributes that are hidden in answers."""

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

        received, sent: secret and request authenticator of the hop that it came by, and of the one to the NAS.
        PacketError: a hidden attribute does not open.
        """
        kept = answer.without(_OF_THE_HOP)
        return (
            kept
            if self._kinds.isdisjoint(answer.first)
            else rehide(kept, Hiding(*received), Hiding(*sent), self._places)
        )


def split_name(name: bytes) -> tuple[bytes, bytes]:
    r"""Return a User-Name as (user, realm): `REALM\user`, or `user@realm`, where the last @ counts; without one, (name,
    b"").

    As `login.identity.split_realm`, but of octets: a User-Name that is passed on need not be text.
    """
    if b"\\" in name:
        realm, _, user = name.partition(b"\\")
        return user, realm
    if b"@" in name:
        user, _, realm = name.rpartition(b"@")
        return user, realm
    return name, b""


def accepted_user(login: Login, name: bytes) -> str | None:
    """Return the user that an Accept with a User-Name admits, without realm; None if the request cannot mean that user.

    The identity outside an EAP tunnel may hide the user inside (RFC 3579 section 3), but not the domain, which it
    found: a realm is that of the request, or one of the domain's. Any other request is its own user's, whatever realm
    the home server adds to the name, and however it writes a MAC address.
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
    is_name = user.isprintable() and "\ufffd" not in user  # what `as_text` makes of NUL
    return user if user and is_name else None

"""Rewrite a request for the home server, and its answer for the NAS (RFC 2865 sections 2.3 and 5.33).

All attributes are forwarded unchanged, except three kinds that belong to one hop. These are Message-Authenticator, the
attributes that are encrypted with the hop's secret, and the Proxy-State that this service adds to the request and
removes from the answer. Attributes of one type keep their order; the order between types may change (RFC 2865 section
5). An Access-Accept may contain another User-Name than the request (RFC 2865 section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_bytes
from typing import Final

from sallyport.areas.login.login import Login
from sallyport.base.errors import PacketError
from sallyport.base.mac import station_key
from sallyport.base.text import fold
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
    """A request to forward.

    password: the decrypted PAP password, or None if the request has none. name: the User-Name to send instead of the
    received one, or None to keep it. mark: the Proxy-State of this service.
    """

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
            raise PacketError(
                f"the request would have {length} octets with the attributes for forwarding, which is too long"
            )

    def packet(self, identifier: int, secret: SharedSecret) -> bytes:
        """Return the encoded request for a home server, with a new random authenticator."""
        authenticator, attributes = token_bytes(16), self._attributes
        if self._password is not None:
            hidden = hide_password(self._password, secret, authenticator)
            attributes = push_attribute(USER_PASSWORD, hidden) + attributes
        return encode_request(ACCESS_REQUEST, identifier, secret, attributes, authenticator=authenticator)


class Back:
    """A converter of a home server's answers for the NAS. places: maps the (vendor, type) of each encrypted attribute
    to the way in which it is encrypted; see `radius.salted`."""

    def __init__(self, places: Mapping[tuple[int, int], int]) -> None:
        self._places = places
        self._kinds = frozenset({VENDOR_SPECIFIC, *(kind for vendor, kind in places if not vendor)})

    def attributes(
        self,
        answer: Reply,
        received: tuple[SharedSecret, bytes],
        sent: tuple[SharedSecret, bytes],
    ) -> bytes:
        """Return the encoded attributes of a verified answer, for the NAS. Raises PacketError if an encrypted attribute
        cannot be decrypted.

        received: the shared secret and request authenticator between this service and the home server. sent: the shared
        secret and request authenticator between the NAS and this service.
        """
        kept = answer.without(_OF_THE_HOP)
        return (
            kept
            if self._kinds.isdisjoint(answer.first)
            else rehide(kept, Hiding(*received), Hiding(*sent), self._places)
        )


def split_name(name: bytes) -> tuple[bytes, bytes]:
    r"""Split a User-Name into (user, realm). Return (name, b"") if it has no realm.

    The forms are `REALM\user` and `user@realm`; if there are several @, the realm begins after the last one.
    `login.identity.split_realm` does the same for text, but a forwarded User-Name may be no text.
    """
    if b"\\" in name:
        realm, _, user = name.partition(b"\\")
        return user, realm
    if b"@" in name:
        user, _, realm = name.rpartition(b"@")
        return user, realm
    return name, b""


def accepted_user(login: Login, name: bytes) -> str | None:
    """Return the user that an Access-Accept with this User-Name admits, without the realm. Return None if the name does
    not fit the request.

    Without EAP, the user must be the user of the request. This comparison ignores realms, and the notation of a MAC
    address. With EAP, the user may differ from the user of the request, because the outer identity can hide the user
    (RFC 3579 section 3). But if the name has a realm, it must be the realm of the request, or belong to the domain of
    the login.
    """
    user, realm = map(as_name, split_name(name))
    is_same = station_key(user) == station_key(login.user)
    if login.method != Method.EAP:
        return login.user if is_same else None
    outer_realm = as_name(split_name(login.arrival.request.first.get(USER_NAME, b""))[1])
    own = () if login.domain is None else login.domain.realm_keys
    if realm and fold(realm) not in (fold(outer_realm), *own):
        return None
    if is_same:
        return login.user
    is_name = user.isprintable() and "\ufffd" not in user  # `as_text` replaces NUL by U+FFFD
    return user if user and is_name else None

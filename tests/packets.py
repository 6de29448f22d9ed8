"""Packets as RADIUS clients send them, without a socket.

authenticator: given where a test sends the same request twice. body: further attributes in octets.
"""

from secrets import token_bytes

from sallyport.radius import attributes as names
from sallyport.radius.attributes import CHAP_CHALLENGE, CHAP_PASSWORD, USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.packet import (
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    STATUS_SERVER,
    Request,
    decode,
    encode_request,
)
from sallyport.radius.password import chap_response, hide_password
from tests.areas import SECRET


def attributes(**values: bytes) -> bytes:
    """Attributes in octets, by the names of sallyport.radius.attributes: NAS_IDENTIFIER=b"switch-1"."""
    return b"".join(push_attribute(getattr(names, name), value) for name, value in values.items())


def access_request(
    body: bytes = b"",
    *,
    identifier: int = 0,
    authenticator: bytes = b"",
    secret: bytes = SECRET,
    signed: bool = True,
) -> bytes:
    """An Access-Request with the attributes of `body`."""
    authenticator = authenticator or token_bytes(16)
    if signed:
        return encode_request(ACCESS_REQUEST, identifier, SharedSecret(secret), body, authenticator=authenticator)
    return bytes((ACCESS_REQUEST, identifier)) + (20 + len(body)).to_bytes(2) + authenticator + body


def pap(
    user: str | bytes,
    password: str | bytes,
    body: bytes = b"",
    *,
    identifier: int = 0,
    authenticator: bytes = b"",
    secret: bytes = SECRET,
    signed: bool = True,
) -> bytes:
    """A login with User-Password."""
    authenticator = authenticator or token_bytes(16)
    hidden = hide_password(_octets(password), SharedSecret(secret), authenticator)
    body = push_attribute(USER_NAME, _octets(user)) + push_attribute(USER_PASSWORD, hidden) + body
    return access_request(body, identifier=identifier, authenticator=authenticator, secret=secret, signed=signed)


def chap(
    user: str | bytes, password: str | bytes, challenge: bytes | None = None, *, value: bytes = b"", signed: bool = True
) -> bytes:
    """A login with CHAP-Password. challenge: in an attribute of its own; None: the authenticator. value: in place of
    the right response."""
    authenticator = token_bytes(16)
    value = value or chap_response(7, _octets(password), authenticator if challenge is None else challenge)
    body = push_attribute(USER_NAME, _octets(user)) + push_attribute(CHAP_PASSWORD, value)
    if challenge is not None:
        body += push_attribute(CHAP_CHALLENGE, challenge)
    return access_request(body, authenticator=authenticator, signed=signed)


def accounting(body: bytes = b"", *, identifier: int = 0, secret: bytes = SECRET) -> bytes:
    """An Accounting-Request."""
    return encode_request(ACCOUNTING_REQUEST, identifier, SharedSecret(secret), body)


def status_server(*, identifier: int = 0, secret: bytes = SECRET) -> bytes:
    """A Status-Server (RFC 5997)."""
    return encode_request(STATUS_SERVER, identifier, SharedSecret(secret), b"")


def opened(datagram: bytes, *, secret: bytes = SECRET) -> Request:
    """A packet as the service reads it."""
    return decode(datagram, SharedSecret(secret))


def _octets(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text

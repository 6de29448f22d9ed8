"""Packets of RADIUS clients, without a socket.

authenticator: the authenticator; a test gives it to send the same request twice. body: further attributes in octets.
"""

from secrets import token_bytes

from sallyport.radius import attributes as names
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CHALLENGE,
    MS_CHAP_RESPONSE,
    MsChap2,
    challenge_response,
    nt_hash,
)
from sallyport.radius.packet import (
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    STATUS_SERVER,
    Request,
    SharedSecret,
    decode,
    encode_request,
)
from sallyport.radius.password import chap_response, hide_password
from tests.areas import SECRET


def attributes(**values: bytes) -> bytes:
    """Return attributes in octets.

    They are given by the names in sallyport.radius.attributes: NAS_IDENTIFIER=b"switch-1".
    """
    return b"".join(push_attribute(getattr(names, name), value) for name, value in values.items())


def access_request(
    body: bytes = b"",
    *,
    identifier: int = 0,
    authenticator: bytes = b"",
    secret: bytes = SECRET,
    signed: bool = True,
) -> bytes:
    """Return an Access-Request that has the attributes of `body`."""
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
    """Return a login with User-Password."""
    authenticator = authenticator or token_bytes(16)
    hidden = hide_password(_octets(password), SharedSecret(secret), authenticator)
    body = push_attribute(USER_NAME, _octets(user)) + push_attribute(USER_PASSWORD, hidden) + body
    return access_request(body, identifier=identifier, authenticator=authenticator, secret=secret, signed=signed)


def chap(
    user: str | bytes,
    password: str | bytes,
    challenge: bytes | None = None,
    *,
    value: bytes = b"",
    body: bytes = b"",
    signed: bool = True,
) -> bytes:
    """Return a login with CHAP-Password.

    challenge: the challenge to send in CHAP-Challenge; if None, the authenticator is the challenge. value: the value to
    send instead of the right response.
    """
    authenticator = token_bytes(16)
    value = value or chap_response(7, _octets(password), authenticator if challenge is None else challenge)
    body = push_attribute(USER_NAME, _octets(user)) + push_attribute(CHAP_PASSWORD, value) + body
    if challenge is not None:
        body += push_attribute(CHAP_CHALLENGE, challenge)
    return access_request(body, authenticator=authenticator, signed=signed)


def mschap2(user: str | bytes, password: str | bytes, *, hashed_name: bytes | None = None, body: bytes = b"") -> bytes:
    """Return a login with MS-CHAPv2 (RFC 2548 section 2.3.2).

    hashed_name: the name in the hash; if None, the user name as it is sent.
    """
    attempt = MsChap2(7, token_bytes(16), token_bytes(16), bytes(24))
    name = _octets(user) if hashed_name is None else hashed_name
    response = challenge_response(attempt.nt_challenge(name), nt_hash(_octets(password)))
    value = bytes((7, 0)) + attempt.peer_challenge + bytes(8) + response
    return microsoft(user, (MS_CHAP_CHALLENGE, attempt.challenge), (MS_CHAP2_RESPONSE, value), body=body)


def mschap1(user: str | bytes, password: str | bytes) -> bytes:
    """Return a login with MS-CHAP (RFC 2548 section 2.1.3)."""
    challenge = token_bytes(8)
    value = bytes((7, 1)) + bytes(24) + challenge_response(challenge, nt_hash(_octets(password)))
    return microsoft(user, (MS_CHAP_CHALLENGE, challenge), (MS_CHAP_RESPONSE, value))


def microsoft(user: str | bytes, *pairs: tuple[int, bytes], body: bytes = b"") -> bytes:
    """Return a login with Microsoft's vendor attributes."""
    own = b"".join(push_vendor_attribute(MICROSOFT, kind, value) for kind, value in pairs)
    return access_request(push_attribute(USER_NAME, _octets(user)) + own + body)


def accounting(body: bytes = b"", *, identifier: int = 0, secret: bytes = SECRET) -> bytes:
    """Return an Accounting-Request."""
    return encode_request(ACCOUNTING_REQUEST, identifier, SharedSecret(secret), body)


def status_server(*, identifier: int = 0, secret: bytes = SECRET) -> bytes:
    """Return a Status-Server (RFC 5997)."""
    return encode_request(STATUS_SERVER, identifier, SharedSecret(secret), b"")


def opened(datagram: bytes, *, secret: bytes = SECRET) -> Request:
    """Return the packet that the service decodes from these octets."""
    return decode(datagram, SharedSecret(secret))


def _octets(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text

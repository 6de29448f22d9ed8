"""Valid requests and their garbled forms. Each mutation takes octets and returns other octets."""

from collections.abc import Callable
from random import Random

from sallyport.radius import attributes as names
from sallyport.radius.attributes import push_attribute
from sallyport.radius.packet import ACCESS_REQUEST, ACCOUNTING_REQUEST, STATUS_SERVER, SharedSecret, encode_request
from sallyport.radius.password import chap_response, hide_password

Mutation = Callable[[Random, bytes], bytes]

NAMES = (b"ann", b"nobody", b"ann@nowhere", b"NOWHERE\\ann", b"\xff\x00", b"")


class Requests:
    """Valid requests with a secret. By default the passwords are wrong, so that no mutation can make a login right."""

    def __init__(self, secret: bytes, random: Random) -> None:
        self._secret = SharedSecret(secret)
        self._random = random

    def any_signed(self) -> bytes:
        """Return a request of any kind that proves its sender."""
        return self._random.choice((self.login, self.login, self.accounting, self.status))()

    def login(self) -> bytes:
        """Return an Access-Request with a Message-Authenticator, by PAP, CHAP or EAP."""
        authenticator = self._random.randbytes(16)
        body = self._body() + self._credentials(authenticator)
        return encode_request(ACCESS_REQUEST, self._identifier(), self._secret, body, authenticator=authenticator)

    def unsigned(self) -> bytes:
        """Return an Access-Request by PAP without a Message-Authenticator."""
        authenticator = self._random.randbytes(16)
        hidden = hide_password(b"not the password", self._secret, authenticator)
        body = self._body() + push_attribute(names.USER_PASSWORD, hidden)
        return bytes((ACCESS_REQUEST, self._identifier())) + (20 + len(body)).to_bytes(2) + authenticator + body

    def accounting(self) -> bytes:
        """An Accounting-Request."""
        body = self._body() + push_attribute(names.ACCT_STATUS_TYPE, self._random.randbytes(4))
        return encode_request(ACCOUNTING_REQUEST, self._identifier(), self._secret, body)

    def status(self) -> bytes:
        """A Status-Server."""
        return encode_request(STATUS_SERVER, self._identifier(), self._secret, b"")

    def signed_again(self, mutation: Mutation) -> bytes:
        """Return an authentic request whose attributes were mutated before it was signed.

        It is odd, but is the client's own.
        """
        authenticator = self._random.randbytes(16)
        password = push_attribute(names.USER_PASSWORD, hide_password(b"hello", self._secret, authenticator))
        credentials = self._random.choice((password, self._credentials(authenticator)))
        body = mutation(self._random, bytes(20) + self._body() + credentials)[20:4000]
        if self._random.random() < 0.3:
            return encode_request(ACCOUNTING_REQUEST, self._identifier(), self._secret, body)
        return encode_request(ACCESS_REQUEST, self._identifier(), self._secret, body, authenticator=authenticator)

    def _identifier(self) -> int:
        return self._random.randrange(256)

    def _body(self) -> bytes:
        name = push_attribute(names.USER_NAME, self._random.choice(NAMES))
        values = {
            names.NAS_IP_ADDRESS: bytes((10, 0, 0, 1)),
            names.NAS_IDENTIFIER: b"switch-1",
            names.CALLING_STATION_ID: b"%012x" % self._random.randrange(1000),
            names.NAS_PORT_TYPE: (15).to_bytes(4),
            names.VENDOR_SPECIFIC: (9).to_bytes(4) + push_attribute(1, b"audit-session-id=1"),
            names.PROXY_STATE: b"17",
        }
        return name + b"".join(push_attribute(kind, value) for kind, value in values.items())

    def _credentials(self, authenticator: bytes) -> bytes:
        kind = self._random.randrange(3)
        if kind == 0:
            return push_attribute(names.USER_PASSWORD, hide_password(b"wrong", self._secret, authenticator))
        if kind == 1:
            return push_attribute(names.CHAP_PASSWORD, chap_response(1, b"wrong", authenticator))
        return push_attribute(names.EAP_MESSAGE, b"\x02\x01\x00\x08\x01ann")


def flip(random: Random, octets: bytes) -> bytes:
    """Change one to eight bits."""
    altered = bytearray(octets)
    for _ in range(random.randint(1, 8)):
        altered[random.randrange(len(altered))] ^= 1 << random.randrange(8)
    return bytes(altered)


def truncate(random: Random, octets: bytes) -> bytes:
    """Cut off the end."""
    return octets[: random.randrange(len(octets))]


def lie_about_length(random: Random, octets: bytes) -> bytes:
    """Change the length in the header."""
    length = random.choice(
        (0, 19, 20, 21, len(octets) - 1, len(octets) + 1, 4096, 4097, 65535, random.randrange(65536))
    )
    return octets[:2] + length.to_bytes(2) + octets[4:]


def lie_about_attribute(random: Random, octets: bytes) -> bytes:
    """Change the length of an attribute."""
    altered, at = bytearray(octets), 20
    for _ in range(random.randrange(4)):
        at += octets[at + 1] if at + 1 < len(octets) else 0
    if at + 1 < len(altered):
        altered[at + 1] = random.choice((0, 1, 2, 255, random.randrange(256)))
    return bytes(altered)


def double(random: Random, octets: bytes) -> bytes:
    """Repeat one attribute, or all attributes, many times."""
    size = octets[21] if len(octets) > 21 else 0
    again = random.choice((octets[20 : 20 + size], octets[20:]))
    return _with_length(octets + again * random.choice((1, 2, 20)))


def many(random: Random, octets: bytes) -> bytes:
    """Add hundreds of attributes, which are empty or have the maximum length."""
    kind = random.randrange(256)
    return _with_length(octets + random.choice((bytes((kind, 2)) * 2000, push_attribute(kind, bytes(253)) * 16)))


def other_code(random: Random, octets: bytes) -> bytes:
    """Change the code of the packet."""
    return random.randbytes(1) + octets[1:]


def pad(random: Random, octets: bytes) -> bytes:
    """Add octets after the end of the packet. They count as padding (RFC 2865 section 3)."""
    return octets + random.randbytes(random.choice((1, 100, 5000, 60000)))


def noise(random: Random, octets: bytes) -> bytes:
    """Return random octets instead of a packet."""
    return random.randbytes(random.choice((0, 1, 19, 20, 21, len(octets), 4096, 4097, 65000)))


def change_value(random: Random, octets: bytes) -> bytes:
    """Replace the value of one attribute by random octets of the same length."""
    at = 20
    for _ in range(random.randrange(8)):
        at = at + octets[at + 1] if at + octets[at + 1] < len(octets) - 1 else 20
    return octets[: at + 2] + random.randbytes(octets[at + 1] - 2) + octets[at + octets[at + 1] :]


def change_type(random: Random, octets: bytes) -> bytes:
    """Change the type of the first attribute."""
    return octets[:20] + random.randbytes(1) + octets[21:]


def _with_length(octets: bytes) -> bytes:
    return octets[:2] + min(len(octets), 65535).to_bytes(2) + octets[4:]


IN_TRANSIT: tuple[Mutation, ...] = (
    flip, truncate, lie_about_length, lie_about_attribute, double, many, other_code, pad, noise,
)  # fmt: skip
BEFORE_SIGNING: tuple[Mutation, ...] = (flip, lie_about_attribute, double, many, change_value, change_type)

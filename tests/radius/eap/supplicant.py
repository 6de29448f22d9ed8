"""An EAP client that uses the same primitives as the server. It answers requests until the conversation ends."""

from collections.abc import Callable
from hashlib import md5
from typing import Protocol

from OpenSSL import SSL

from sallyport.cli.benchmark.supplicant import PEER_CHALLENGE, challenge_answer
from sallyport.radius.attributes import CHAP_CHALLENGE, CHAP_PASSWORD, EAP_MESSAGE, USER_NAME, USER_PASSWORD
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.model import Done, Send
from sallyport.radius.eap.packet import Framing, Packet, decode, encode
from sallyport.radius.eap.ttls import pull_avps, push_avp
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CHALLENGE,
    MsChap2,
    authenticator_response,
    challenge_response,
    nt_hash,
    nt_hash_hash,
)
from sallyport.radius.password import chap_response
from tests.radius.eap.certificates import Issued
from tests.radius.eap.users import Users

RESULT_SUCCESS = b"\x80\x03\x00\x02\x00\x01"
MAX_ROUNDS = 300


class Side(Protocol):
    """The client's side of an EAP method."""

    kind: int

    def respond(self, request: Packet) -> bytes:
        """Return the Type-Data of the response to a request."""


class Supplicant:
    """A client with one method.

    offered: the Types that the server offered and the client refused.
    """

    def __init__(self, identity: bytes, side: Side) -> None:
        self._identity = identity
        self._side = side
        self.offered: list[int] = []

    def respond(self, octets: bytes) -> bytes:
        """Return the response to a request."""
        request = decode(octets)
        assert request.code == eap.REQUEST
        if request.kind == eap.IDENTITY:
            return self._response(request, eap.IDENTITY, self._identity)
        if request.kind != self._side.kind:
            self.offered.append(request.kind)
            return self._response(request, eap.NAK, bytes((self._side.kind,)))
        return self._response(request, self._side.kind, self._side.respond(request))

    def _response(self, request: Packet, kind: int, data: bytes) -> bytes:
        return encode(Packet(eap.RESPONSE, request.identifier, kind, data))


def log_in(conversation: Conversation, users: Users, supplicant: Supplicant) -> Done:
    """Run a conversation between server and client until it ends."""
    outcome = conversation.begin()
    for _ in range(MAX_ROUNDS):
        if isinstance(outcome, Done):
            return outcome
        assert isinstance(outcome, Send)
        outcome = users.settle(conversation, conversation.receive(supplicant.respond(outcome.octets)))
    raise AssertionError("it does not end")


class Md5Side:
    """A client of EAP-MD5."""

    kind = eap.MD5

    def __init__(self, password: bytes) -> None:
        self._password = password

    def respond(self, request: Packet) -> bytes:
        """Return the MD5 hash of identifier, password and challenge."""
        challenge = request.data[1:17]
        return b"\x10" + md5(bytes((request.identifier,)) + self._password + challenge).digest()


class GtcSide:
    """A client of EAP-GTC that types its texts one after the other.

    prompts: the prompts that it has received.
    """

    kind = eap.GTC

    def __init__(self, *typed: bytes) -> None:
        self._typed = list(typed)
        self.prompts: list[bytes] = []

    def respond(self, request: Packet) -> bytes:
        """Return the next text."""
        self.prompts.append(request.data)
        return self._typed.pop(0)


class MsChapSide:
    """A client of EAP-MSCHAPv2 that tries its passwords one after the other.

    errors: the errors that the server reported. has_proof: whether the server has accepted, and has proved that it
    knows the password.
    """

    kind = eap.MSCHAPV2

    def __init__(self, user: bytes, *passwords: bytes) -> None:
        self._user = user
        self._passwords = list(passwords)
        self._attempt: MsChap2 | None = None
        self._hashed = b""
        self.errors: list[str] = []
        self.has_proof = False

    def respond(self, request: Packet) -> bytes:
        """Return a response. If the request is a result, check its proof and return the acknowledgement."""
        code, identifier = request.data[0], request.data[1]
        if code == 1:
            return self._try(identifier, request.data[5:21])
        if code == 3:
            assert self._attempt is not None
            proof = authenticator_response(self._attempt, nt_hash_hash(self._hashed), self._user)
            assert request.data[4:].startswith(proof)
            self.has_proof = True
            return b"\x03"
        text = request.data[4:].decode()
        self.errors.append(text)
        if " R=1 " in text:
            return self._try(identifier + 1, bytes.fromhex(text.partition(" C=")[2][:32]))
        return b"\x04"

    def _try(self, identifier: int, challenge: bytes) -> bytes:
        self._hashed = nt_hash(self._passwords.pop(0))
        self._attempt, octets = challenge_answer(identifier, challenge, self._user, self._hashed)
        return octets


Inside = Callable[["TlsSide", bytes], bytes | None]
"""A function that returns the data that a client sends in a tunnel.

Its argument is the data that the client received, which are empty at first. None means that the client sends nothing.
"""


class TlsSide:
    """A client of TLS, TTLS or PEAP.

    begins: whether the client sends first inside the tunnel, unless it resumes a session. before: the client whose
    session it resumes. is_new: whether the session is new, so that the server has sent its certificate.
    """

    def __init__(
        self,
        kind: int,
        inside: Inside,
        *,
        begins: bool = False,
        shows: Issued | None = None,
        fragment_size: int = 1000,
        version: int = SSL.TLS1_3_VERSION,
        before: "TlsSide | None" = None,
    ) -> None:
        self.kind = kind
        self._inside = inside
        self._begins = begins
        self._framing = Framing(0, fragment_size)
        self._context = _context(version, shows) if before is None else before._context
        self.connection = SSL.Connection(self._context, None)
        self.connection.set_app_data(self)
        self.is_new = False
        if before is not None:
            self.connection.set_session(before.leave())
        self.connection.set_connect_state()
        self._stands = False

    def respond(self, request: Packet) -> bytes:
        """Return a fragment, an acknowledgement, or the next data of TLS and of the inner method."""
        if request.data == bytes((0x20,)):
            return self._framing.send(self.turn(b""))
        message = self._framing.receive(request.data)
        if message is None:
            return self._framing.acknowledgement()
        if self._framing.is_sending:
            return self._framing.next()
        return self._framing.send(self.turn(message))

    def turn(self, message: bytes) -> bytes:
        """Return the next data of TLS and of the inner method after a message. The first message is empty."""
        if message:
            self.connection.bio_write(message)
        heard = self._hear()
        if self._stands:
            said = self._inside(self, heard) if heard or (self._begins and self.is_new) else None
            self._begins = False
            if said:
                self.connection.send(said)
        try:
            return self.connection.bio_read(100_000)
        except SSL.WantReadError:
            return b""

    def _hear(self) -> bytes:
        try:
            if not self._stands:
                self.connection.do_handshake()
                self._stands = True
            return self.connection.recv(65_536)
        except (SSL.WantReadError, SSL.Error):
            return b""

    def leave(self) -> SSL.Session:
        """Close the connection, and return its session."""
        self.connection.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)
        session = self.connection.get_session()
        assert session is not None
        return session


def _context(version: int, shows: Issued | None) -> SSL.Context:
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_max_proto_version(version)
    context.set_info_callback(_watch)
    if shows is not None:
        context.use_certificate_chain_file(str(shows.file))
        context.use_privatekey_file(str(shows.file))
    return context


def _watch(connection: SSL.Connection, _where: int, _value: int) -> None:
    if connection.get_state_string() == b"SSLv3/TLS read server certificate":
        side = connection.get_app_data()
        assert isinstance(side, TlsSide)
        side.is_new = True


def silent(_side: TlsSide, _heard: bytes) -> bytes | None:
    """Return the inner method of EAP-TLS. It sends nothing."""
    return None


def in_peap(identity: bytes, inner: Side, *, header: bool = False, result: bytes = RESULT_SUCCESS) -> Inside:
    """Return EAP inside PEAP. The client agrees to any result.

    header: whether to send the EAP header, which clients usually omit.
    """
    supplicant = Supplicant(identity, inner)

    def say(_side: TlsSide, heard: bytes) -> bytes | None:
        if heard[0] == eap.REQUEST and int.from_bytes(heard[2:4]) == len(heard):
            request = decode(heard)
            assert request.kind == eap.EXTENSIONS
            agreed = request.data if result == RESULT_SUCCESS else result
            return encode(Packet(eap.RESPONSE, request.identifier, eap.EXTENSIONS, agreed))
        request = Packet(eap.REQUEST, 7, heard[0], heard[1:])
        octets = supplicant.respond(encode(request))
        return octets if header else octets[4:]

    return say


def in_ttls_pap(user: bytes, password: bytes) -> Inside:
    """Return User-Name and User-Password with padding (RFC 5281 section 11.2.5)."""
    padded = password + bytes(-len(password) % 16)
    return lambda _side, heard: None if heard else push_avp(USER_NAME, user) + push_avp(USER_PASSWORD, padded)


def in_ttls_chap(user: bytes, password: bytes, *, challenge: bytes | None = None) -> Inside:
    """Return CHAP with the given challenge. If none is given, use the challenge of the tunnel."""

    def say(side: TlsSide, heard: bytes) -> bytes | None:
        if heard:
            return None
        implicit = challenge or side.connection.export_keying_material(b"ttls challenge", 17)
        value = chap_response(implicit[16], password, implicit[:16])
        return push_avp(USER_NAME, user) + push_avp(CHAP_CHALLENGE, implicit[:16]) + push_avp(CHAP_PASSWORD, value)

    return say


def in_ttls_mschap(user: bytes, password: bytes, *, challenge: bytes | None = None) -> Inside:
    """Return MS-CHAPv2 with the given challenge.

    If none is given, use the challenge of the tunnel. The client acknowledges the server's proof.
    """

    def say(side: TlsSide, heard: bytes) -> bytes | None:
        if heard:
            return None
        implicit = challenge or side.connection.export_keying_material(b"ttls challenge", 17)
        blank = MsChap2(implicit[16], implicit[:16], PEER_CHALLENGE, b"")
        response = challenge_response(blank.nt_challenge(user), nt_hash(password))
        value = bytes((implicit[16], 0)) + PEER_CHALLENGE + bytes(8) + response
        return (
            push_avp(USER_NAME, user)
            + push_avp(MS_CHAP_CHALLENGE, implicit[:16], MICROSOFT)
            + push_avp(MS_CHAP2_RESPONSE, value, MICROSOFT)
        )

    return say


def in_ttls_eap(identity: bytes, inner: Side) -> Inside:
    """Return EAP that is carried in attributes. It begins with the identity."""
    supplicant = Supplicant(identity, inner)

    def say(_side: TlsSide, heard: bytes) -> bytes | None:
        if not heard:
            return push_avp(EAP_MESSAGE, encode(Packet(eap.RESPONSE, 0, eap.IDENTITY, identity)))
        octets = b"".join(avp.value for avp in pull_avps(heard) if avp.code == EAP_MESSAGE)
        return push_avp(EAP_MESSAGE, supplicant.respond(octets))

    return say

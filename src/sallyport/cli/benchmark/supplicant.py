"""A station that logs in with EAP-PEAP and MSCHAPv2 again and again: wpa_supplicant's side of PEAP version 0.

The station trusts the certificate that it gets, because it measures and proves nothing. It speaks TLS 1.2, the default
of wpa_supplicant. It either makes a new session for each login, or resumes the session of its first login.
"""

from typing import Final

from OpenSSL import SSL

from sallyport.cli.benchmark.traffic import LoadError, nas_of, refusal
from sallyport.radius.attributes import CALLING_STATION_ID, EAP_MESSAGE, STATE, USER_NAME, push_attribute
from sallyport.radius.eap.packet import (
    EXTENSIONS,
    IDENTITY,
    MSCHAPV2,
    NAK,
    PEAP,
    REQUEST,
    RESPONSE,
    START,
    Framing,
    Packet,
    decode,
    encode,
    push_eap_message,
)
from sallyport.radius.mschap import MsChap2, challenge_response, nt_hash
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REQUEST, Reply, SharedSecret, encode_request

FRAGMENT_SIZE: Final = 1398
PEER_CHALLENGE: Final = bytes(range(16))
_CHALLENGE, _RESPONSE, _SUCCESS = 1, 2, 3  # OpCode (draft-kamath-pppext-eap-mschapv2 section 2)
_READ: Final = 1 << 16


def challenge_answer(identifier: int, challenge: bytes, user: bytes, hashed: bytes) -> tuple[MsChap2, bytes]:
    """Return the response to a challenge of EAP-MSCHAPv2, and the Type-Data of its packet
    (draft-kamath-pppext-eap-mschapv2 section 2.2). hashed: the NT hash of the password."""
    blank = MsChap2(identifier, challenge, PEER_CHALLENGE, b"")
    response = challenge_response(blank.nt_challenge(user), hashed)
    value = b"\x31" + PEER_CHALLENGE + bytes(8) + response + b"\0"
    octets = bytes((_RESPONSE, identifier)) + (4 + len(value) + len(user)).to_bytes(2) + value + user
    return MsChap2(identifier, challenge, PEER_CHALLENGE, response), octets


class PeapLogins:
    """A station (`traffic.Dialogue`). A unit is a whole login.

    number: of the station. resumes: whether it resumes the session of its first login.
    """

    def __init__(self, number: int, secret: bytes, user: bytes, password: bytes, *, resumes: bool) -> None:
        self._secret = SharedSecret(secret)
        self._user = user
        self._hashed = nt_hash(password)
        self._resumes = resumes
        station = b"02-01-00-00-%02X-%02X" % (number >> 8, number & 0xFF)
        self._fixed = push_attribute(USER_NAME, user) + nas_of(number) + push_attribute(CALLING_STATION_ID, station)
        self._context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        self._context.set_max_proto_version(SSL.TLS1_2_VERSION)
        self._session: SSL.Session | None = None
        self._begin()

    def _begin(self) -> None:
        self._state = b""
        self._message = encode(Packet(RESPONSE, 0, IDENTITY, self._user))
        self._framing = Framing(0, FRAGMENT_SIZE)
        self._tls = SSL.Connection(self._context, None)
        if self._session is not None:
            self._tls.set_session(self._session)
        self._tls.set_connect_state()
        self._is_established = False

    def request(self, identifier: int) -> bytes:
        attributes = self._fixed + push_eap_message(self._message) + self._state
        return encode_request(ACCESS_REQUEST, identifier, self._secret, attributes)

    def receive(self, reply: Reply) -> bool:
        if reply.code == ACCESS_ACCEPT:
            self._keep_session()
            self._begin()
            return True
        if reply.code != ACCESS_CHALLENGE:
            raise refusal(reply)
        self._state = push_attribute(STATE, reply.first[STATE])
        request = decode(b"".join(reply.values(EAP_MESSAGE)))
        if request.kind == PEAP:
            answer = Packet(RESPONSE, request.identifier, PEAP, self._respond(request.data))
        else:  # the service offers another method first
            answer = Packet(RESPONSE, request.identifier, NAK, bytes((PEAP,)))
        self._message = encode(answer)
        return False

    def _respond(self, data: bytes) -> bytes:
        """Return the Type-Data of the response to a message of PEAP."""
        if data[0] & START:
            return self._framing.send(self._turn(b""))
        message = self._framing.receive(data)
        if message is None:
            return self._framing.acknowledgement()
        if self._framing.is_sending:
            return self._framing.next()
        return self._framing.send(self._turn(message))

    def _turn(self, message: bytes) -> bytes:
        """Return the octets of TLS that answer those of the server. Empty octets start the handshake."""
        if message:
            self._tls.bio_write(message)
        clear = self._read()
        if clear:
            self._tls.send(self._inner(clear))
        try:
            return self._tls.bio_read(_READ)
        except SSL.WantReadError:
            return b""

    def _read(self) -> bytes:
        try:
            if not self._is_established:
                self._tls.do_handshake()
                self._is_established = True
            return self._tls.recv(_READ)
        except SSL.WantReadError:
            return b""
        except SSL.Error as error:
            raise LoadError(f"TLS: {error}") from error

    def _inner(self, clear: bytes) -> bytes:
        """Return the response to an EAP request in the tunnel. Only Extensions have their header (MS-PEAP 3.1.5)."""
        if clear[0] == REQUEST and int.from_bytes(clear[2:4]) == len(clear):
            request = decode(clear)
            return encode(Packet(RESPONSE, request.identifier, EXTENSIONS, request.data))
        kind, data = clear[0], clear[1:]
        if kind == IDENTITY:
            return bytes((IDENTITY,)) + self._user
        if kind != MSCHAPV2:
            return bytes((NAK, MSCHAPV2))
        if data[0] == _CHALLENGE:
            return bytes((MSCHAPV2,)) + challenge_answer(data[1], data[5:21], self._user, self._hashed)[1]
        if data[0] == _SUCCESS:
            return bytes((MSCHAPV2, _SUCCESS))
        raise LoadError(f"MSCHAPv2: {data[4:].decode(errors='replace')}")

    def _keep_session(self) -> None:
        if not self._resumes or self._session is not None:
            return
        self._tls.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)  # otherwise OpenSSL does not resume it
        self._session = self._tls.get_session()

"""EAP methods that check a password and have no tunnel.

EAP-MSCHAPv2 (draft-kamath-pppext-eap-mschapv2): MS-CHAPv2 (RFC 2759) in four kinds of messages.
The server sends a Challenge, and the client sends a Response. Then the server sends Success or Failure, and the client
acknowledges it with a message of the same kind. If a Failure allows another try, the client can instead send a Response
to the challenge in the Failure.

EAP-MD5 (RFC 3748 section 5.4): a CHAP challenge. The method derives no keys, and does not authenticate the server.

EAP-GTC (RFC 3748 section 5.6): a prompt, and the text that the user types. The text is sent in clear, so the method is
offered only inside a tunnel. A verdict may contain another prompt, for example for the code of a second factor.
"""

from secrets import token_bytes
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.eap.model import Chap, Check, Failed, Failure, MsChap, Next, Passed, Password, Step, Verdict
from sallyport.radius.eap.packet import GTC, MD5, MSCHAPV2, Packet
from sallyport.radius.mschap import MsChap2, authenticator_response
from sallyport.radius.mschap_reply import ErrorCode, master_key, start_key

CHALLENGE: Final = 1
RESPONSE: Final = 2
SUCCESS: Final = 3
FAILURE: Final = 4

SERVER_NAME: Final = b"sallyport"
_RESPONSE_SIZE: Final = 49  # peer challenge, 8 reserved octets, NT response, flags
_HEADER: Final = 5  # code, identifier, length, length of the value


class MsChapV2:
    """EAP-MSCHAPv2 for one user.

    retries: the number of further tries after a wrong password. challenge: the challenge of 16 octets; None for a
    random challenge.
    """

    kind = MSCHAPV2
    name = "mschapv2"

    def __init__(self, user: bytes, *, retries: int = 0, challenge: bytes | None = None) -> None:
        self._user = user
        self._retries = retries
        self._challenge = challenge or token_bytes(16)
        self._identifier = 0
        self._attempt: MsChap2 | None = None
        self._end: Passed | Failed | None = None

    def begin(self) -> Step:
        """Return the request with the challenge."""
        return Next(self._message(CHALLENGE, b"\x10" + self._challenge + SERVER_NAME))

    def respond(self, packet: Packet) -> Step:
        """Process a Response, or the acknowledgement of a Success or Failure."""
        data = packet.data
        if data[:1] == bytes((RESPONSE,)) and self._attempt is None:
            return self._take(data)
        if isinstance(self._end, Passed) and data[:1] == bytes((SUCCESS,)):
            return self._end
        if isinstance(self._end, Failed):
            return self._end
        raise PacketError("the client has sent an unexpected EAP-MSCHAPv2 message")

    def _take(self, data: bytes) -> Step:
        if len(data) < _HEADER + _RESPONSE_SIZE or data[4] != _RESPONSE_SIZE:
            raise PacketError(f"the EAP-MSCHAPv2 response is malformed ({len(data)} octets)")
        self._identifier = data[1]
        value, hashed = data[_HEADER : _HEADER + _RESPONSE_SIZE], data[_HEADER + _RESPONSE_SIZE :]
        self._attempt = MsChap2(self._identifier, self._challenge, value[:16], value[24:48])
        return Check(MsChap(self._user, self._attempt, hashed or self._user))

    def answer(self, verdict: Verdict) -> Step:
        """Return Success with the authenticator response, or Failure with the error code."""
        attempt = self._attempt
        assert attempt is not None  # noqa: S101  the question was about it
        if not verdict.right:
            return self._refuse(verdict)
        master = master_key(verdict.hash_hash, attempt.response)
        msk = start_key(master, sent=False) + start_key(master, sent=True)
        self._end = Passed(self._user, msk)
        proof = authenticator_response(attempt, verdict.hash_hash, verdict.hashed)
        return Next(self._message(SUCCESS, proof + b" M=OK"))

    def _refuse(self, verdict: Verdict) -> Step:
        self._end = Failed(verdict.reason, Failure.REFUSED)
        retry = self._retries > 0 and verdict.error is ErrorCode.AUTHENTICATION_FAILURE
        challenge = token_bytes(16)
        if retry:
            self._retries -= 1
            self._challenge, self._attempt = challenge, None
        text = f"E={verdict.error:d} R={retry:d} C={challenge.hex()} V=3 M=Authentication failed"  # RFC 2759 section 6
        return Next(self._message(FAILURE, text.encode()))

    def _message(self, code: int, rest: bytes) -> bytes:
        return bytes((code, self._identifier)) + (4 + len(rest)).to_bytes(2) + rest


_SIZE: Final = 16


class Md5:
    """EAP-MD5 for one user. challenge: the challenge of 16 octets; None for a random challenge."""

    kind = MD5
    name = "md5"

    def __init__(self, user: bytes, challenge: bytes | None = None) -> None:
        self._user = user
        self._challenge = challenge or token_bytes(_SIZE)

    def begin(self) -> Step:
        """Return the request with the challenge."""
        return Next(bytes((_SIZE,)) + self._challenge)

    def respond(self, packet: Packet) -> Step:
        """Return the question whether the response is correct. The EAP identifier is the CHAP identifier."""
        if packet.data[:1] != bytes((_SIZE,)) or len(packet.data) <= _SIZE:
            raise PacketError(f"the EAP-MD5 response is malformed ({len(packet.data)} octets)")
        value = bytes((packet.identifier,)) + packet.data[1 : _SIZE + 1]
        return Check(Chap(self._user, value, self._challenge))

    def answer(self, verdict: Verdict) -> Step:
        """Return the result of the method."""
        return Passed(self._user) if verdict.right else Failed(verdict.reason, Failure.REFUSED)


PROMPT: Final = "Password: "
MAX_TYPED: Final = 253
MAX_STEPS: Final = 5


class Gtc:
    """EAP-GTC for one user."""

    kind = GTC
    name = "gtc"

    def __init__(self, user: bytes) -> None:
        self._user = user
        self._step = 0

    def begin(self) -> Step:
        """Return the request with the prompt for the password."""
        return Next(PROMPT.encode())

    def respond(self, packet: Packet) -> Step:
        """Return the question whether the typed text is the password, or the correct answer to the last prompt."""
        if len(packet.data) > MAX_TYPED:
            raise PacketError(f"the EAP-GTC response has {len(packet.data)} octets, more than {MAX_TYPED}")
        return Check(Password(self._user, packet.data, self._step, prompts=self._step < MAX_STEPS))

    def answer(self, verdict: Verdict) -> Step:
        """Return the result of the method, or another prompt."""
        if verdict.prompt and self._step < MAX_STEPS:
            self._step += 1
            return Next(verdict.prompt[:MAX_TYPED].encode())
        return Passed(self._user) if verdict.right else Failed(verdict.reason, Failure.REFUSED)

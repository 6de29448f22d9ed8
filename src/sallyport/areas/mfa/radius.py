"""The provider for another RADIUS server that checks codes, such as RSA, multiOTP, a Duo proxy or privacyIDEA's
FreeRADIUS.

Each code is sent in an Access-Request with a Message-Authenticator. After an Access-Challenge the user is asked again.
The State of the Access-Challenge is the handle. Each request has its own UDP socket, so that identifiers never run out.

An answer without a Message-Authenticator is refused. Otherwise an attacker on the path could change an Access-Reject
into an Access-Accept (BlastRADIUS, CVE-2024-3596).
"""

from __future__ import annotations

import socket
from secrets import randbelow, token_bytes
from typing import ClassVar, Final

import trio

from sallyport.areas.mfa.fields import Fields, RadiusFields
from sallyport.areas.mfa.host import Host
from sallyport.areas.mfa.provider import CHECK_USER, Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    MESSAGE_AUTHENTICATOR,
    NAS_IDENTIFIER,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    MAX_LENGTH,
    SharedSecret,
    as_text,
    decode_reply,
    encode_request,
)
from sallyport.radius.password import hide_password

_OUTCOMES: Final = {
    ACCESS_ACCEPT: Outcome.APPROVED,
    ACCESS_REJECT: Outcome.WRONG_CODE,
    ACCESS_CHALLENGE: Outcome.CODE,
}


class Radius:
    """The provider for another RADIUS server."""

    name: ClassVar[str] = "radius"
    fields: ClassVar[type[Fields]] = RadiusFields
    asks_for_codes: ClassVar[bool] = True
    only_codes: ClassVar[bool] = True
    tries_s: ClassVar[tuple[float, ...]] = (2.0, 3.0, 5.0)
    """Times in seconds to wait for an answer, one after each transmission of the request."""

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, RadiusFields)  # noqa: S101  the caller made it with `fields`
        self._server = fields.host
        self._port = fields.port
        self._secret = SharedSecret(fields.secret.get_secret_value().encode())
        self._host = host

    async def enrolled(self, user: str) -> Enrolment:
        """Return UNKNOWN, because RADIUS has no request that asks for an enrolment."""
        return Enrolment.UNKNOWN

    async def check(self) -> str:
        """Send a random code for a user that the server should not know."""
        answer = await self._answer(CHECK_USER, Code(str(randbelow(10**8))), "")
        if answer.outcome is Outcome.APPROVED:
            raise ProviderError("the RADIUS server checks no codes: a random code of an unknown user was accepted")
        return "the RADIUS server answers with the same secret, but cannot be asked about enrolments"

    async def start(self, question: Question) -> Answer:
        """Ask the user for a code. The server gets a request only when the user has typed the code."""
        return Answer(Outcome.CODE)

    async def poll(self, handle: str) -> Answer:
        """Raise ProviderError. `poll` is never needed, because no answer of this provider is WAITING."""
        raise ProviderError("this provider has no push to wait for, only typed codes")

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Send the code in an Access-Request. If the call is cancelled while it waits for the answer, the code may
        already be used up at the server."""
        return await self._answer(question.user, code, handle)

    async def _answer(self, user: str, code: Code, handle: str) -> Answer:
        if code.text is not None and not code.text.strip("\0"):
            return Answer(Outcome.WRONG_CODE)  # some servers do not answer an empty password at all
        authenticator = token_bytes(16)
        try:
            attributes = push_attribute(USER_NAME, user.encode()) + self._proof(code, authenticator)
            attributes += push_attribute(NAS_IDENTIFIER, b"sallyport")
            attributes += push_attribute(STATE, bytes.fromhex(handle)) if handle else b""
        except ValueError:  # a text that is too long for RADIUS is no code
            return Answer(Outcome.WRONG_CODE)
        request = encode_request(ACCESS_REQUEST, randbelow(256), self._secret, attributes, authenticator=authenticator)
        kind, first = await self._exchange(request)
        if kind not in _OUTCOMES:
            raise ProviderError(f"the RADIUS server answers with code {kind}")
        text = as_text(first.get(REPLY_MESSAGE, b""))
        return Answer(
            _OUTCOMES[kind], handle=first.get(STATE, b"").hex() if kind == ACCESS_CHALLENGE else "", text=text
        )

    async def cancel(self, handle: str) -> None:
        """Do nothing, because the server's State expires by itself."""

    async def aclose(self) -> None:
        """Do nothing, because each request closes its socket."""

    def _proof(self, code: Code, authenticator: bytes) -> bytes:
        """Return the encoded attributes that carry the code: User-Password, or the received CHAP response with its
        challenge. Raises ValueError if the code is too long."""
        if code.text is None:
            return push_attribute(CHAP_PASSWORD, code.response) + push_attribute(CHAP_CHALLENGE, code.challenge)
        hidden = hide_password(code.text.encode(errors="surrogateescape"), self._secret, authenticator)
        return push_attribute(USER_PASSWORD, hidden)

    async def _exchange(self, request: bytes) -> tuple[int, dict[int, bytes]]:
        """Send the request, and return the server's verified answer. Raises ProviderError if no answer arrives in
        time."""
        egress = self._host.http.egress
        address = (await egress.resolve(self._server, self._port, socket.SOCK_DGRAM))[0]
        unproven = ""
        try:
            with trio.socket.from_stdlib_socket(egress.sockets.open(address, socket.SOCK_DGRAM)) as udp:
                await udp.connect((address, self._port))
                for wait_s in self.tries_s:
                    await udp.send(request)
                    with trio.move_on_after(wait_s):
                        while True:
                            datagram = await udp.recv(MAX_LENGTH)
                            await egress.turns.take()
                            try:
                                return _signed(decode_reply(datagram, request, self._secret))
                            except PacketError as error:  # perhaps forged, so the authentic answer may still arrive
                                unproven = f"; an answer failed verification: {error}; check the secret"
        except OSError:
            raise ProviderError(
                f"{self._server}: no RADIUS server answers at this address; check host and port"
            ) from None
        silent = "; a server does not answer if it does not know this machine as a client, or if the secret is wrong"
        raise ProviderError(f"{self._server}: no answer from the RADIUS server{unproven or silent}")


def _signed(answer: tuple[int, dict[int, bytes]]) -> tuple[int, dict[int, bytes]]:
    if MESSAGE_AUTHENTICATOR not in answer[1]:
        raise ProviderError(
            "the RADIUS server answers without Message-Authenticator, so anyone on the path could have forged the "
            "answer"
        )
    return answer

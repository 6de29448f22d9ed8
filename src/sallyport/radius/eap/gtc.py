"""EAP-GTC (RFC 3748 section 5.6): a prompt, and what the user types. Offered inside a tunnel alone, since it is sent in
clear. A verdict can ask for more: so a second factor's code is asked for."""

from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.eap.model import Check, Failed, Failure, Next, Passed, Password, Step, Verdict
from sallyport.radius.eap.packet import GTC, Packet

PROMPT: Final = "Password: "
MAX_TYPED: Final = 253
MAX_STEPS: Final = 5


class Gtc:
    """EAP-GTC of one user."""

    kind = GTC
    name = "gtc"

    def __init__(self, user: bytes) -> None:
        self._user = user
        self._step = 0

    def begin(self) -> Step:
        """The prompt for the password."""
        return Next(PROMPT.encode())

    def respond(self, packet: Packet) -> Step:
        """What was typed."""
        if len(packet.data) > MAX_TYPED:
            raise PacketError(f"an EAP-GTC response of {len(packet.data)} octets")
        return Check(Password(self._user, packet.data, self._step, prompts=self._step < MAX_STEPS))

    def answer(self, verdict: Verdict) -> Step:
        """The end, or another prompt."""
        if verdict.prompt and self._step < MAX_STEPS:
            self._step += 1
            return Next(verdict.prompt[:MAX_TYPED].encode())
        return Passed(self._user) if verdict.right else Failed(verdict.reason, Failure.REFUSED)

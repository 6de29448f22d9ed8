"""What TLS, TTLS and PEAP share: the handshake in fragments, then what the phase inside says, then keys and the end."""

from typing import Final, Protocol

from sallyport.radius.eap.framing import Framing
from sallyport.radius.eap.model import Check, Failed, Failure, Next, Passed, Step, Verdict
from sallyport.radius.eap.packet import TTLS, TYPE_NAMES, Packet
from sallyport.radius.eap.tunnel import Tunnel

_KEY: Final = b"EXPORTER_EAP_TLS_Key_Material"  # RFC 9190 section 2.3, RFC 9427 section 2.1
_KEY_TLS12: Final = b"client EAP encryption"  # RFC 5216 section 2.3, which PEAP uses too
_KEY_TTLS12: Final = b"ttls keying material"  # RFC 5281 section 8
_KEY_OCTETS: Final = 128
_MSK_OCTETS: Final = 64


class Phase(Protocol):
    """What goes on inside the tunnel. Its `Next` holds what is said inside, and nothing where it only waits; its
    `Passed` needs no keys. Each call may raise PacketError."""

    @property
    def inner(self) -> str:
        """The method inside, such as `mschapv2`; empty where there is none, or none yet."""

    def established(self) -> Step:
        """The tunnel stands; nothing was said in it."""

    def respond(self, clear: bytes) -> Step:
        """What the client says inside; empty: it has acknowledged what was said."""

    def answer(self, verdict: Verdict) -> Step:
        """Go on with the answer to its question."""


class Tunnelled:
    """One method in TLS. kind: TLS, TTLS or PEAP."""

    def __init__(self, kind: int, tunnel: Tunnel, phase: Phase, fragment_size: int) -> None:
        self.kind = kind
        self._tunnel = tunnel
        self._phase = phase
        self._framing = Framing(0, fragment_size)
        self._end: Step | None = None  # when the last words have been acknowledged

    @property
    def name(self) -> str:
        """Such as `peap-mschapv2`."""
        inner = self._phase.inner
        return f"{TYPE_NAMES[self.kind]}-{inner}" if inner else TYPE_NAMES[self.kind]

    def begin(self) -> Step:
        """The start: version 0 of PEAP and TTLS."""
        return Next(self._framing.start())

    def respond(self, packet: Packet) -> Step:
        """A fragment, an acknowledgement, or a whole message."""
        message = self._framing.receive(packet.data)
        if message is None:
            return Next(self._framing.acknowledgement())
        if self._framing.is_sending:
            return Failed("a message instead of an acknowledgement") if message else Next(self._framing.next())
        if self._end is not None:
            return self._finish(self._end)
        return self._receive(message)

    def answer(self, verdict: Verdict) -> Step:
        """Go on with the answer to a question from inside."""
        return self._say(self._phase.answer(verdict))

    def _receive(self, message: bytes) -> Step:
        tunnel, stood = self._tunnel, self._tunnel.established
        tunnel.receive(message)
        if tunnel.trouble:
            self._end = Failed(tunnel.trouble, Failure.CERTIFICATE if tunnel.has_refused else Failure.TLS)
            alert = tunnel.take()
            return Next(self._framing.send(alert)) if alert else self._end
        if not tunnel.established:
            flight = tunnel.take()
            return Next(self._framing.send(flight)) if flight else Failed("an empty message in the handshake")
        clear = tunnel.read()
        if stood:
            return self._say(self._phase.respond(clear))
        step = self._phase.established()
        if clear and step == Next(b""):
            step = self._phase.respond(clear)
        return self._say(step)

    def _say(self, step: Step) -> Step:
        """Send what the phase says, and what TLS itself has to say before."""
        if isinstance(step, Check):
            return step
        if isinstance(step, Next):
            self._tunnel.write(step.data)
        else:
            self._end = step
        octets = self._tunnel.take()
        if octets:
            return Next(self._framing.send(octets))
        if self._end is not None:
            return self._finish(self._end)
        return self._after_silence()

    def _after_silence(self) -> Step:
        """Neither side has anything on the way: after a resumption of TLS 1.2 it is for us to begin."""
        step = self._phase.respond(b"")
        if step == Next(b""):
            return Next(self._framing.acknowledgement())
        return self._say(step)

    def _finish(self, step: Step) -> Step:
        if not isinstance(step, Passed):
            return step
        self._tunnel.keep()
        return Passed(step.user, self._msk())

    def _msk(self) -> bytes:
        if self._tunnel.is_tls13:
            return self._tunnel.export(_KEY, _KEY_OCTETS, bytes((self.kind,)))[:_MSK_OCTETS]
        label = _KEY_TTLS12 if self.kind == TTLS else _KEY_TLS12
        return self._tunnel.export(label, _KEY_OCTETS)[:_MSK_OCTETS]

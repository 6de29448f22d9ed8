"""The common part of EAP-TLS, TTLS and PEAP: the handshake in fragments, the inner phase, the keys, and the end.

If a client wants to resume a session, the method does not answer the ClientHello at once. It first asks the caller
whether the session's user may log in. If the user may not log in or the session is unknown, a full handshake follows,
and the client logs in again. This must be decided before the handshake. Most clients treat a resumed handshake as the
end of the login, so a full login would not be possible later.
"""

from typing import Final, Protocol

from cryptography import x509

from sallyport.radius.eap.model import Check, Failed, Failure, Next, Passed, Resumed, Step, Verdict
from sallyport.radius.eap.packet import TLS, TTLS, TYPE_NAMES, Framing, Packet
from sallyport.radius.eap.resumption import Resumptions, SessionUser
from sallyport.radius.eap.tunnel import Tunnel

_KEY: Final = b"EXPORTER_EAP_TLS_Key_Material"  # RFC 9190 section 2.3, RFC 9427 section 2.1
_KEY_TLS12: Final = b"client EAP encryption"  # RFC 5216 section 2.3, which PEAP uses too
_KEY_TTLS12: Final = b"ttls keying material"  # RFC 5281 section 8
_KEY_OCTETS: Final = 128
_MSK_OCTETS: Final = 64


_MAX_HANDSHAKE_SIZE: Final = 16_384
"""Maximum number of octets of TLS that a client may send before the handshake ends. The event loop verifies the
client's certificates, and the time grows with the square of their names."""


class Phase(Protocol):
    """The protocol inside the tunnel.

    A `Next` contains the inner octets; they are empty if the server waits for the client. A `Passed` contains no keys.
    Each call may raise PacketError.
    """

    @property
    def inner(self) -> str:
        """Return the name of the inner method, such as `mschapv2`. Return "" while the method is unknown."""

    @property
    def issuers(self) -> tuple[x509.Certificate, ...] | None:
        """Return the issuers of the client's certificate to keep with the TLS session, see `SessionUser`. Return None
        if the session must not be kept."""

    def established(self, holder: SessionUser | None) -> Step:
        """Start the inner phase after the handshake. holder: the user of the resumed session; None for a new
        session."""

    def respond(self, clear: bytes) -> Step:
        """Process the decrypted octets of the client. They are empty if the client acknowledges a message."""

    def answer(self, verdict: Verdict) -> Step:
        """Continue after the verdict on the inner protocol's question."""


class Tunnelled:
    """A method that uses TLS.

    kind: TLS, TTLS or PEAP. resumptions: the sessions of this method that can be resumed. now: the start of the
    conversation, in seconds of a monotonic clock. owner: a tenant. New sessions are stored in this tenant's share of
    the session table.
    """

    def __init__(
        self,
        kind: int,
        tunnel: Tunnel,
        phase: Phase,
        resumptions: Resumptions,
        fragment_size: int,
        *,
        now: float,
        owner: int = 0,
    ) -> None:
        self.kind = kind
        self._tunnel = tunnel
        self._phase = phase
        self._resumptions = resumptions
        self._owner = owner
        self._now = now
        self._framing = Framing(0, fragment_size)
        self._session: bytes | None = None  # the digest of the resumed session
        self._holder: SessionUser | None = None
        self._stamp = ""
        self._heard = 0  # octets of the client's handshake
        self._end: Step | None = None  # the result, if the client acknowledges the last message

    @property
    def name(self) -> str:
        """Return the name of the method, such as `peap-mschapv2`. Return only `peap` while the inner method is
        unknown."""
        inner = self._phase.inner
        return f"{TYPE_NAMES[self.kind]}-{inner}" if inner else TYPE_NAMES[self.kind]

    def begin(self) -> Step:
        """Return the Start message. It announces version 0 of PEAP and TTLS."""
        return Next(self._framing.start())

    def respond(self, packet: Packet) -> Step:
        """Process a fragment, an acknowledgement, or a whole message."""
        message = self._framing.receive(packet.data)
        if message is None:
            return Next(self._framing.acknowledgement())
        if self._framing.is_sending:
            return Failed("a message instead of an acknowledgement") if message else Next(self._framing.next())
        if self._end is not None:
            return self._finish(self._end)
        return self._receive(message)

    def answer(self, verdict: Verdict) -> Step:
        """Continue after the caller's verdict. The question came from the inner protocol, or it was about the user of
        the session to resume."""
        if not verdict.right:
            self._resumptions.forget(self._tunnel.sessions)
        if self._tunnel.established:
            self._stamp = verdict.stamp
            return self._say(self._phase.answer(verdict))
        if not verdict.right:
            self._session = self._holder = None
            self._tunnel.begin_anew()
        return self._shake()

    def _receive(self, message: bytes) -> Step:
        tunnel, stood = self._tunnel, self._tunnel.established
        if not stood:
            self._heard += len(message)
            if self._heard > _MAX_HANDSHAKE_SIZE:
                why = f"the client's handshake is longer than {_MAX_HANDSHAKE_SIZE:,} octets"
                return Failed(why, Failure.CERTIFICATE if self.kind == TLS else Failure.TLS)
        tunnel.receive(message)
        resumed = tunnel.resumed
        if resumed is not None and self._holder is None:
            return self._recognize(resumed)
        if tunnel.trouble or not tunnel.established:
            return self._shake()
        if resumed != self._session:  # a client that replays another client's ClientHello cannot finish the handshake
            return Failed("the client's second ClientHello resumes another session than its first", Failure.TLS)
        clear = tunnel.read()
        if stood:
            return self._say(self._phase.respond(clear))
        step = self._phase.established(self._holder)
        if clear and step == Next(b""):
            step = self._phase.respond(clear)
        return self._say(step)

    def _shake(self) -> Step:
        """Return a message of TLS itself: a part of the handshake, or an alert."""
        tunnel = self._tunnel
        octets = tunnel.take()
        if tunnel.trouble:
            self._end = Failed(tunnel.trouble, Failure.CERTIFICATE if tunnel.has_refused else Failure.TLS)
            return Next(self._framing.send(octets)) if octets else self._end
        return Next(self._framing.send(octets)) if octets else Failed("an empty message in the handshake")

    def _recognize(self, session: bytes) -> Step:
        """Return the question whether the user of the session may resume it. Start a full handshake if the session is
        unknown."""
        self._holder = holder = self._resumptions.find(session, now=self._now)
        self._session = None if holder is None else session
        if holder is None:
            self._tunnel.begin_anew()
        elif self.kind != TLS or holder.issuers:  # EAP-TLS asks about the certificate's user anyway
            return Check(Resumed(holder.user, holder.stamp, by_certificate=self.kind == TLS))
        return self._shake()

    def _say(self, step: Step) -> Step:
        """Send the message of the inner phase. If TLS itself has a message, that message is sent first."""
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
        """Start the inner phase if neither side has a message to send. After a resumption in TLS 1.2, the server sends
        the first inner message."""
        step = self._phase.respond(b"")
        if step == Next(b""):
            return Next(self._framing.acknowledgement())
        return self._say(step)

    def _finish(self, step: Step) -> Step:
        if not isinstance(step, Passed):
            return step
        holder, method = self._holder, ""
        if holder is None:
            holder = self._new_holder(step.user)
        elif holder.inner:
            method = f"{TYPE_NAMES[self.kind]}-{holder.inner}"
        if holder is not None:
            self._resumptions.keep(self._tunnel.sessions, holder, self._owner)
        self._tunnel.keep()
        return Passed(step.user, self._msk(), method)

    def _new_holder(self, user: bytes) -> SessionUser | None:
        """Return the holder of the sessions of a full login. Return None if they must not be kept."""
        issuers, most_s = self._phase.issuers, self._tunnel.certificate_left_s
        if issuers is None:
            return None
        inner = self._phase.inner
        return self._resumptions.holder(user, self._stamp, inner, issuers=issuers, most_s=most_s, now=self._now)

    def _msk(self) -> bytes:
        if self._tunnel.is_tls13:
            return self._tunnel.export(_KEY, _KEY_OCTETS, bytes((self.kind,)))[:_MSK_OCTETS]
        label = _KEY_TTLS12 if self.kind == TTLS else _KEY_TLS12
        return self._tunnel.export(label, _KEY_OCTETS)[:_MSK_OCTETS]

"""One EAP conversation (RFC 3748): the client's identity, the negotiation of a method, the method itself, and the end.
TTLS and PEAP run another conversation in their tunnel.

`Conversations` is a table of pending conversations by State, with a maximum size. Each tenant has a share of the table,
and each RADIUS client has a share within its tenant.
"""

from collections.abc import Callable
from secrets import token_bytes
from typing import Final, Generic, TypeVar

from sallyport.base.bounded import ExpiringMap
from sallyport.base.errors import PacketError
from sallyport.radius.eap.model import (
    Check,
    Done,
    Failed,
    Failure,
    Method,
    Next,
    Offer,
    Offers,
    Outcome,
    Passed,
    Send,
    Step,
    Verdict,
    Waiting,
)
from sallyport.radius.eap.packet import (
    FAILURE,
    IDENTITY,
    NAK,
    REQUEST,
    RESPONSE,
    SUCCESS,
    Packet,
    decode,
    encode,
    end,
)

MAX_ROUNDS: Final = 100
"""Maximum number of responses in a conversation. A certificate chain in fragments of 100 octets takes about seventy."""
MAX_NAME: Final = 253


class Conversation:
    """The EAP conversation with one client.

    offers: the methods that the server offers. now: the start of the conversation, in seconds of a monotonic clock.
    """

    def __init__(self, offers: Offers, *, now: float) -> None:
        self._offers = offers
        self._now = now
        self._left: list[Offer] = list(offers.methods)
        self._method: Method | None = None  # None after the end, because TLS objects take much memory
        self._name = ""
        self.kind = 0
        """The EAP Type of the method that was started last."""
        self._can_choose = False  # the client may still ask for another method with a Nak
        self._identifier: int | None = None
        self._response = b""
        self._outcome: Outcome | None = None
        self._rounds = 0
        self.identity = b""
        """The outer identity, as the client has sent it. It may be `anonymous`."""
        self.user = b""
        """The user's name: first the outer identity, then the name inside the tunnel or in the certificate."""

    @property
    def method(self) -> str:
        """Return the name of the method, such as `peap-mschapv2`. Return only `peap` while the inner method is
        unknown."""
        return self._name if self._method is None else self._method.name

    @property
    def waits_for_client(self) -> bool:
        """Return whether the client must send the next packet."""
        return isinstance(self._outcome, Send)

    @property
    def identifier(self) -> int:
        """Return the identifier of the last EAP request."""
        return self._identifier or 0

    def begin(self) -> Outcome:
        """Request the client's identity. Most RADIUS clients have already done this. Raises PacketError if the
        conversation has already begun, because the identity must not change."""
        if self._outcome is not None:
            raise PacketError("the client has sent EAP-Start inside a conversation")
        return self._request(IDENTITY, b"")

    def receive(self, octets: bytes) -> Outcome:
        """Process an EAP packet. A retransmitted packet has the same outcome as the first.

        Raises PacketError if the packet does not answer the last request; then nothing has changed.
        """
        if octets == self._response and self._outcome is not None:
            return Waiting() if isinstance(self._outcome, Check) else self._outcome
        packet = decode(octets)
        if packet.code != RESPONSE:
            raise PacketError("the EAP packet is not a response")
        outcome = self.respond(packet)
        self._response = octets
        return outcome

    def respond(self, packet: Packet) -> Outcome:
        """Process an EAP response, which must not be a retransmission. Raises PacketError as in `receive`."""
        if isinstance(self._outcome, (Check, Done)):
            raise PacketError("the client has sent an EAP response without a request")
        if packet.identifier != self._identifier and self._identifier is not None:
            raise PacketError(f"the EAP response is for request {packet.identifier} instead of {self._identifier}")
        expected = IDENTITY if self._method is None else self._method.kind
        if packet.kind != expected and not (packet.kind == NAK and self._can_choose):
            raise PacketError(f"the EAP response has the type {packet.kind} instead of {expected}")
        self._identifier = packet.identifier
        self._rounds += 1
        try:
            self._outcome = self._go_on(packet)
        except PacketError as error:
            self._outcome = self._fail(str(error))
        return self._outcome

    def answer(self, verdict: Verdict) -> Outcome:
        """Continue after the caller's verdict on the method's question."""
        assert self._method is not None  # noqa: S101  it put the question
        self._outcome = self._become(self._method.answer(verdict))
        return self._outcome

    def _go_on(self, packet: Packet) -> Outcome:
        if self._rounds > MAX_ROUNDS:
            return self._fail(f"more than {MAX_ROUNDS} rounds")
        if self._method is None:
            return self._identify(packet.data)
        if packet.kind == NAK:
            return self._choose(packet.data)
        self._can_choose = False
        return self._become(self._method.respond(packet))

    def _identify(self, name: bytes) -> Outcome:
        if len(name) > MAX_NAME:
            return self._fail(f"an identity of {len(name)} octets")
        self.identity = self.user = name
        if not self._left:
            why = self._offers.why(self._offers.left_out)
            return self._fail(f"no method can be offered: {why}", Failure.NOT_OFFERED)
        return self._start(self._left[0])

    def _choose(self, wanted: bytes) -> Outcome:
        """Start a method from the client's Nak: the first method that the server offers and has not tried yet (RFC 3748
        section 5.3.1)."""
        for kind in wanted:
            for offer in self._left:
                if offer.kind == kind:
                    return self._start(offer)
        why = self._offers.why(filter(None, wanted)) or "nothing else"
        return self._fail(f"the client wants a method that is not offered: {why}", Failure.NOT_OFFERED)

    def _start(self, offer: Offer) -> Outcome:
        self._left.remove(offer)
        self.kind = offer.kind
        self._method = offer.make(self.identity, self._now)
        self._can_choose = True
        return self._become(self._method.begin())

    def _become(self, step: Step) -> Outcome:
        if isinstance(step, Next):
            assert self._method is not None  # noqa: S101  it made the step
            return self._request(self._method.kind, step.data)
        if isinstance(step, Check):
            self.user = step.question.user
            return step
        if isinstance(step, Passed):
            self.user = step.user
            self._leave()
            octets = end(SUCCESS, self.identifier)
            return Done(True, octets, step.user, f"eap-{self.method}", step.msk, resumed=step.resumed)
        return self._fail(step.reason, step.failure)

    def _leave(self) -> None:
        self._name, self._method = self.method, None

    def _request(self, kind: int, data: bytes) -> Outcome:
        self._identifier = 0 if self._identifier is None else self._identifier + 1 & 0xFF
        self._outcome = Send(encode(Packet(REQUEST, self._identifier, kind, data)))
        return self._outcome

    def _fail(self, reason: str, failure: Failure = Failure.BROKEN) -> Outcome:
        self._leave()
        method = f"eap-{self.method}" if self.method else "eap"
        return Done(False, end(FAILURE, self.identifier), self.user, method, reason=reason, failure=failure)


def failed(inner: Outcome) -> Failed:
    """Return the failure of a tunnelled method whose inner conversation has failed. inner: the last outcome of the
    inner conversation."""
    if isinstance(inner, Done) and inner.failure is not None:
        return Failed(inner.reason, inner.failure)
    return Failed("a response without a request inside the tunnel")


MAX_CONVERSATIONS: Final = 4096
AGE_S: Final = 60.0
STATE_OCTETS: Final = 16
NODE_OCTETS: Final = 4
"""Number of octets at the start of a State that contain the number of the node with the conversation."""

_Talk = TypeVar("_Talk")


class Conversations(Generic[_Talk]):
    """The table of pending conversations, by State. The caller stores one object for each conversation.

    If the table is full, a new conversation replaces an old one. The table selects the tenant with the most
    conversations, and within the tenant the RADIUS client with the most conversations. The oldest conversation of this
    client is replaced. So a client that starts thousands of conversations replaces only its own.

    most: the maximum number of pending conversations. age_s: the time in seconds that a conversation waits for the EAP
    client. left: a function that is called with each expired conversation. node: a function that returns the number of
    this node, or 0 if there is only one node. The methods get the current time as `now`, in seconds of a monotonic
    clock.
    """

    def __init__(
        self,
        most: int = MAX_CONVERSATIONS,
        age_s: float = AGE_S,
        *,
        left: Callable[[_Talk], None] = lambda _talk: None,
        node: Callable[[], int] = lambda: 0,
    ) -> None:
        self._left = left
        self._node = node
        self._talks = ExpiringMap[bytes, tuple[int, int, _Talk]](most, age_s)

    def __len__(self) -> int:
        return len(self._talks)

    def add(self, tenant_id: int, client_id: int, talk: _Talk, *, now: float) -> bytes:
        """Store a conversation of a RADIUS client. Return its State: the number of this node, and 12 random octets."""
        self.purge(now=now)
        state = self._node().to_bytes(NODE_OCTETS) + token_bytes(STATE_OCTETS - NODE_OCTETS)
        self._talks.put(state, (tenant_id, client_id, talk), tenant_id, client_id, now=now)
        return state

    def find(self, client_id: int, state: bytes, *, now: float) -> _Talk | None:
        """Return the conversation with this State.

        Return None if the State is unknown or belongs to another RADIUS client, or if the conversation has ended or
        expired.
        """
        self.purge(now=now)
        known = self._talks.get(state, now=now)
        if known is None or known[1] != client_id:
            return None
        self._talks.renew(state, known, now=now)
        return known[2]

    def other_node(self, state: bytes) -> int | None:
        """Return the number of the node that has stored the conversation with this State. Return None if this node has
        stored it, or if there is only one node."""
        named, own = int.from_bytes(state[:NODE_OCTETS]), self._node()
        return named if own and len(state) == STATE_OCTETS and named != own else None

    def end(self, state: bytes) -> None:
        """Remove a conversation that has ended."""
        self._talks.pop(state)

    def purge(self, *, now: float) -> None:
        """Remove the expired conversations."""
        for _, _, talk in self._talks.expire(now=now):
            self._left(talk)

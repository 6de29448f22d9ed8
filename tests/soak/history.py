"""The packets that the clients of a round have sent and received, and the faults meanwhile. All times are in seconds of
the monotonic clock."""

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import Final

from sallyport.radius.packet import ACCESS_ACCEPT, ACCOUNTING_RESPONSE
from tests.soak.control import Sample
from tests.torture.load import VERDICTS

DECISIONS: Final = {**VERDICTS, ACCOUNTING_RESPONSE: "stored"}


@dataclass(slots=True)
class Packet:
    """A request, with all its retransmissions. node: the number of the node to which it goes. port: the number of the
    sending port. first, last: the times of the first and of the last transmission. replies: the different authentic
    answers."""

    node: int
    port: int = 0
    octets: bytes = b""
    first: float = 0.0
    last: float = 0.0
    sent: int = 0
    replies: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Login:
    """A login of one station.

    began, ended: the times of the first request and of the answer. code: of the answer; 0: none. node: the number of
    the node that has answered. packets: the requests; the NAS makes another one for each node that it asks. forbidden:
    why an Accept is wrong; empty: it is not. expected: whether an Accept is the only right answer, except during the
    faults at `fragile` places. is_elsewhere: whether it was forbidden at another node than the asked one, a while ago.
    approval: the answer of the user to each prompt. approval_s: the time from a prompt to this answer. silent: the time
    since when the answering node has not answered a retransmission; 0: it has.
    """

    kind: str
    user: str
    station: str
    domain: str = "default"
    began: float = 0.0
    ended: float = 0.0
    code: int = 0
    node: int = 0
    packets: list[Packet] = field(default_factory=list)
    forbidden: str = ""
    expected: bool = False
    fragile: tuple[str, ...] = ()
    is_elsewhere: bool = False
    approval: str = ""
    approval_s: float = 0.0
    silent: float = 0.0
    prompts: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        sent = sum(each.sent for each in self.packets)
        outcome = f"{self.decision or 'no answer'} after {sent} requests in {self.ended - self.began:.1f} s"
        return f"{self.kind} {self.user} at {self.station} ({outcome})"

    @property
    def decision(self) -> str:
        """The decision of the answer as the store names it; empty without an answer."""
        return DECISIONS.get(self.code, "")

    @property
    def accepts(self) -> int:
        """The number of different Accepts that the NAS has received."""
        return sum(reply[0] == ACCESS_ACCEPT for each in self.packets for reply in each.replies)

    @property
    def nodes(self) -> set[int]:
        """The numbers of the nodes that were asked."""
        return {each.node for each in self.packets}


@dataclass(frozen=True, slots=True)
class Answered:
    """A request of the load generator that was answered. began: the time of the first transmission."""

    decision: str
    user: str
    began: float
    latency_s: float


@dataclass(slots=True)
class Bulk:
    """The requests of one run of the load generator to a node. right: the decision that all answers must have. answers:
    by station, or by session and status. accounting has no node in the store."""

    kind: str
    right: str
    node: int = 0
    sent: int = 0
    lost: int = 0
    forged: int = 0
    answers: dict[str, Answered] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request of the API, of the console or of a command that failed at a node."""

    what: str
    began: float
    ended: float
    node: int = 0


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer of a node's /readyz. at, ended: the times of the request and of the answer. status: 0 if there was
    none."""

    node: int
    at: float
    ended: float
    status: int


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a fault. nodes: the numbers of the nodes that it concerns. disturbs_all: whether all tenants of these
    nodes notice it. blocks: whether their stores accept no write meanwhile."""

    fault: str
    place: str
    began: float
    ended: float
    nodes: frozenset[int] = frozenset({0, 1})
    disturbs_all: bool = True
    blocks: bool = False


@dataclass
class History:
    """The history of a round. spans: also the faults of the rounds before, as long as they may matter. errors: what the
    campaign itself has noticed. forged: the number of answers that fit no request of their socket. outdated_agents: the
    number of agents without the last state at the end. states: the number of states that agents have received.
    controls: the delays of the machine itself (`control`)."""

    logins: list[Login] = field(default_factory=list)
    bulks: list[Bulk] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    readiness: list[Readiness] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: int = 0
    forged: int = 0
    outdated_agents: int = 0
    states: int = 0
    controls: list[Sample] = field(default_factory=list)
    _changing: Lock = field(default_factory=Lock)

    def add(self, entry: Login | Bulk | Failure | Readiness | Span) -> None:
        """Add an entry; many threads do so."""
        with self._changing:
            kinds: dict[type, list[object]] = {
                Login: self.logins, Bulk: self.bulks, Failure: self.failures, Readiness: self.readiness,
                Span: self.spans,
            }  # type: ignore[dict-item]  # fmt: skip
            kinds[type(entry)].append(entry)

    def count(self, *, requests: int = 0, forged: int = 0) -> None:
        """Count requests of the API or of the console, and answers that are not authentic."""
        with self._changing:
            self.requests += requests
            self.forged += forged

    @property
    def stalled_s(self) -> float:
        """The longest time for which the machine gave the control no processor."""
        return max((stalled for _, _, stalled in self.controls), default=0.0)

    def lateness_s(self, began: float, ended: float) -> float:
        """Return the longest delay of the control in a time."""
        return max((delay for at, delay, _ in self.controls if at < ended and at + delay > began), default=0.0)

    def during(self, began: float, ended: float, grace_s: float = 0.0) -> Iterator[Span]:
        """Yield the faults of a time, and those that ended less than `grace_s` before it."""
        return (each for each in self.spans if each.began < ended and each.ended + grace_s > began)

    def is_disturbed(self, began: float, ended: float, nodes: Container[int], grace_s: float = 0.0) -> bool:
        """Return whether a fault that all tenants notice concerned one of the nodes."""
        found = self.during(began, ended, grace_s)
        return any(each.disturbs_all and any(node in nodes for node in each.nodes) for each in found)

    def has_fault(self, began: float, ended: float, places: Container[str], grace_s: float = 0.0) -> bool:
        """Return whether there was a fault at one of the places."""
        return any(each.place in places for each in self.during(began, ended, grace_s))

    def outcomes(self) -> Counter[tuple[str, str]]:
        """Return how often each kind of client got each decision."""
        of_logins = ((each.kind, each.decision) for each in self.logins if each.decision)
        of_bulks = ((each.kind, one.decision) for each in self.bulks for one in each.answers.values())
        return Counter(chain(of_logins, of_bulks))

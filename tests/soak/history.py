"""What the clients of a round have sent and received."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_RESPONSE

DECISIONS: Final = {ACCESS_ACCEPT: "accept", ACCESS_REJECT: "reject", ACCOUNTING_RESPONSE: "stored"}


@dataclass(slots=True)
class Login:
    """A login of one station, with all its retransmissions.

    began, ended: monotonic seconds of the first request and of the last answer. code: of the answer; 0: none. answers:
    the number of different answers to the same octets. accepts: the number of nodes that have sent an Accept.
    forbidden: why an Accept is wrong; empty: it is not. expected: whether an Accept is the only right answer. prompts:
    how often the user was prompted. sent: the number of datagrams.
    """

    kind: str
    user: str
    station: str
    began: float
    ended: float = 0.0
    code: int = 0
    answers: int = 0
    accepts: int = 0
    forbidden: str = ""
    expected: bool = False
    prompts: int = 0
    sent: int = 1

    def __str__(self) -> str:
        told = f"{self.decision or 'no answer'} after {self.sent} requests in {self.ended - self.began:.1f} s"
        return f"{self.kind} {self.user} at {self.station} ({told})"

    @property
    def decision(self) -> str:
        """The decision of the answer as the store names it; empty without an answer, and for a challenge."""
        return DECISIONS.get(self.code, "")


@dataclass(slots=True)
class Bulk:
    """The requests of one run of the load generator. answers: the decisions by station, or by session and status.
    right: the decision that all answers must have."""

    kind: str
    right: str
    sent: int = 0
    lost: int = 0
    forged: int = 0
    answers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request of the API, of the console or of a command that failed. began, ended: monotonic seconds."""

    what: str
    began: float
    ended: float


@dataclass
class History:
    """The history of a round. disturbed: the times, in monotonic seconds, of faults that disturb all tenants of a
    node. stalled_s: the longest time for which the machine gave the campaign no processor."""

    logins: list[Login] = field(default_factory=list)
    bulks: list[Bulk] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    requests: int = 0
    stalled_s: float = 0.0
    _changing: Lock = field(default_factory=Lock)

    def add(self, entry: Login | Bulk | Failure) -> None:
        """Add an entry; many threads do so."""
        with self._changing:
            kinds: dict[type, list[object]] = {Login: self.logins, Bulk: self.bulks, Failure: self.failures}  # type: ignore[dict-item]
            kinds[type(entry)].append(entry)

    def count_request(self) -> None:
        """Count a request of the API or of the console."""
        with self._changing:
            self.requests += 1

    def is_disturbed(self, began: float, ended: float, grace_s: float = 0.0) -> bool:
        """Return whether a fault that disturbs all fell into a time, or ended less than `grace_s` before it."""
        return any(begin < ended and end + grace_s > began for begin, end in self.disturbed)

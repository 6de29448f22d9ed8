"""A login, its decision, and the events of the interface."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from pydantic import BaseModel, Field

from sallyport.web.paging import Paged
from sallyport.web.scope import InDomain, Text

if TYPE_CHECKING:
    from sallyport.domains.model import Domain
    from sallyport.inventory.clients.model import Client
    from sallyport.inventory.devices.model import Device, Station
    from sallyport.radius.duplicates import Entry
    from sallyport.radius.packet import Request


class Verdict(StrEnum):
    """How a login ends."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHALLENGE = "challenge"


class Reason(StrEnum):
    """Why a login was refused; empty for one that was let in."""

    NONE = ""
    WRONG_PASSWORD = "wrong password"  # noqa: S105
    UNKNOWN_USER = "unknown user"
    UNKNOWN_REALM = "unknown realm"
    NO_USER_NAME = "no user name"
    NO_DOMAIN = "the RADIUS client has no domain"
    NO_CREDENTIALS = "no credentials that can be checked"
    FIRST_FACTOR_UNAVAILABLE = "the domain's first factor is not configured"


class Method:
    """How the password came: plain text, since every event is written with it."""

    PAP: Final = "pap"
    CHAP: Final = "chap"
    EAP: Final = "eap"
    NONE: Final = "none"


class Decision:
    """What was decided on a login.

    decision: the verdict; applied: what is answered; would_have_been: the verdict in monitor mode, else empty.
    row: the four as plain text, as an event keeps them. Decisions are few and made once, so each is its own key.
    """

    __slots__ = ("applied", "decision", "mode", "passed", "reason", "row", "would_have_been")

    def __init__(self, decision: Verdict, applied: Verdict, would_have_been: str, reason: Reason, mode: str) -> None:
        self.decision = decision
        self.applied = applied
        self.would_have_been = would_have_been
        self.reason = reason
        self.mode = mode
        self.passed = reason is Reason.NONE
        self.row = (decision.value, applied.value, would_have_been, reason.value)


class Exchange(Protocol):
    """Where a request came from and its answer goes to: one listener. number: names it in the store."""

    number: int

    def committed(self, entry: Answered, now: int) -> None:
        """The entry is on disk: its answer may leave. now: microseconds."""

    def abandoned(self, entry: Answered) -> None:
        """The entry could not be kept: it gets no answer."""


class Answered(Protocol):
    """What the journal writes and then lets go."""

    exchange: Exchange
    source: tuple[str, int]
    client: Client
    request: Request
    known: Entry
    reply: bytes
    at: int


class Login:
    """One login on its way from a request to an event.

    at: when it came, in microseconds. source: the sender's socket address. domain: None where none is to be found.
    home: the domain of the client's devices. user: the name without its realm. behind: the station, where the sender
    is proven. known: its entry among the duplicates. reply: the answer's octets.
    """

    __slots__ = (
        "at",
        "behind",
        "client",
        "decision",
        "device",
        "domain",
        "exchange",
        "home",
        "known",
        "latency_us",
        "method",
        "reply",
        "request",
        "source",
        "station",
        "user",
    )

    def __init__(
        self, request: Request, client: Client, source: tuple[str, int], at: int, exchange: Exchange, known: Entry
    ) -> None:
        self.request = request
        self.client = client
        self.source = source
        self.at = at
        self.exchange = exchange
        self.known = known
        self.home: Domain | None = None
        self.user = ""
        self.method: str = Method.NONE
        self.domain: Domain | None = None
        self.behind: Station | None = None
        self.station = ""
        self.device: Device
        self.decision: Decision
        self.latency_us = 0
        self.reply = b""


class AccountingRecord:
    """One Accounting-Request (RFC 2866) on its way to the store. user: as sent; domain_id 0: there is none."""

    __slots__ = (
        "at", "behind", "client", "device", "domain_id", "exchange", "known", "reply", "request", "source", "user",
    )  # fmt: skip

    def __init__(
        self, request: Request, client: Client, source: tuple[str, int], at: int, exchange: Exchange, known: Entry
    ) -> None:
        self.request = request
        self.client = client
        self.source = source
        self.at = at
        self.exchange = exchange
        self.known = known
        self.user = ""
        self.domain_id = 0
        self.behind: Station | None = None
        self.device: Device
        self.reply = b""


class GetAuthLog(InDomain, Paged):
    """Body of GetAuthLog. from and to: ISO 8601; cursor: of the page before."""

    search: Text = ""
    since: Text = Field(default="", validation_alias="from")
    until: Text = Field(default="", validation_alias="to")
    cursor: Text = ""


class EventEntry(BaseModel):
    """One event. time: ISO 8601 UTC; latencyMs: from receipt to decision."""

    eventId: int
    time: str
    user: str
    domain: str
    ip_address: str
    client_ip: str
    device_name: str
    station: str
    method: str
    factor: str
    decision: str
    appliedDecision: str
    wouldHaveBeen: str
    reason: str
    latencyMs: float


class EventList(BaseModel):
    """Answer of GetAuthLog, newest first. cursor: names the next page; empty on the last."""

    events: list[EventEntry]
    totalCount: int
    cursor: str

"""Values of presentation requests."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from sallyport.base.answer import Wire
from sallyport.base.clock import iso


class Status(StrEnum):
    """The stored status of a request."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class State(StrEnum):
    """The state of a request in the answer of presentationStatus."""

    PENDING = "Pending"
    ACCEPTED = "Accepted"
    DECLINED = "Declined"
    EXPIRED = "Expired"
    WITHDRAWN = "Withdrawn"


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request to add. issuer_did: the issuer of the requested credential. The issuer is also the verifier, so the
    presentation's audience is the issuer's DID. schema_id: the id of the schema; 0 for any schema. challenge_id: the
    challenge of the login that waits for the request."""

    domain_id: int
    wallet_id: int
    holder_did: str
    issuer_did: str
    schema_id: int
    nonce: str
    definition: str
    purpose: str
    endpoint: str
    challenge_id: str | None
    expires_at: int


@dataclass(frozen=True, slots=True)
class Request:
    """A stored request. Times are in microseconds."""

    id: int
    domain_id: int
    wallet_id: int
    holder_did: str
    issuer_did: str
    schema_id: int
    nonce: str
    definition: str
    purpose: str
    endpoint: str
    status: str
    created_at: int
    expires_at: int
    answered_at: int | None

    def is_open(self, now: int) -> bool:
        """Return whether the request may still be answered."""
        return self.status == Status.OPEN and now < self.expires_at

    def standing(self, now: int) -> "Standing":
        """Return the request's state at the time `now`, and the time at which the state began."""
        return Standing(self, *_state(self, now))


@dataclass(frozen=True, slots=True)
class Listed:
    """A request in the list of a domain. Times are in microseconds. Answers get `present` and `since` from `state`."""

    id: Annotated[int, Wire("Id of the presentation request.", "presentationRequestId")]
    present: ClassVar[Annotated[State, Wire("State of the request.", "status")]]
    since: ClassVar[Annotated[int, Wire("Time when the request entered this state, ISO 8601.", "at", iso)]]
    wallet_id: Annotated[int, Wire("Id of the holder's wallet.", "walletId")]
    username: Annotated[str, Wire("Owner of the wallet.")]
    holder_did: Annotated[str, Wire("DID of the holder.", "holderDid")]
    issuer_did: Annotated[str, Wire("DID of the issuer of the wanted credential.", "issuerDid")]
    schema_name: Annotated[str, Wire("Schema of the wanted credential; empty for any schema.", "schemaName")]
    purpose: Annotated[str, Wire("Purpose of the request, in words.")]
    endpoint: Annotated[str, Wire("Instance or group to which the user wants access.")]
    status: str
    created_at: Annotated[int, Wire("Time of the request, ISO 8601.", "createdAt", iso)]
    expires_at: Annotated[int, Wire("Time when the request expires, ISO 8601.", "expiresAt", iso)]
    answered_at: int | None

    def state(self, now: int) -> tuple[State, int]:
        """Return the request's state at the time `now`, and the time at which the state began."""
        return _state(self, now)


def _state(request: Request | Listed, now: int) -> tuple[State, int]:
    if request.status != Status.OPEN:
        return State(request.status.capitalize()), request.answered_at or request.created_at
    if now < request.expires_at:
        return State.PENDING, request.created_at
    return State.EXPIRED, request.expires_at


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a request. since: the time at which the state began, in microseconds."""

    request: Request
    state: State
    since: int

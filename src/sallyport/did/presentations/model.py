"""What a presentation request is, in the service and in the interface."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.did.dids.model import Did
from sallyport.did.wallets.model import WalletKey
from sallyport.web.scope import Flag, Id, LongText, Name, PlainText, ScopedIfGiven, Text

NO_GROUP = frozenset({"", "false", "no", "0", "none"})
MAX_PRESENTATION = 64 << 10
"""Characters of what is submitted, as JSON."""


def _operation(value: object) -> object:
    if isinstance(value, bool):
        return str(value)
    return "" if value is None else value


class IssuePR(ScopedIfGiven):
    """Body of issuePR. endpoint: the name or id of an instance or group. groupop, also `grouop`: anything but false or
    no asks the holders of that group in holderDid's place. walletUrl: for the reader; no wallet is connected to."""

    username: Text = ""
    issuerDid: Did
    holderDid: Annotated[PlainText, Field(max_length=2048)] = ""
    walletUrl: LongText = ""
    endpoint: Name
    groupop: Annotated[Text, BeforeValidator(_operation)] = Field(
        default="", validation_alias=AliasChoices("groupop", "grouop")
    )

    @property
    def of_group(self) -> bool:
        """Whether the holders of a group are asked."""
        return self.groupop.strip().lower() not in NO_GROUP

    @model_validator(mode="after")
    def _somebody_is_asked(self) -> "IssuePR":
        if not self.of_group and not self.holderDid:
            raise unfit("holderDid is needed, or groupop", "holderDid")
        return self


class IssuedPR(Model):
    """One request that was issued."""

    prId: int
    walletId: int
    holderDid: str


class PRsIssued(Model):
    """Answer of issuePR."""

    prs: list[IssuedPR]
    message: str
    status: str = "Success"
    code: int = 200


class PollPR(ScopedIfGiven):
    """Body of pollPresentationRequest. presentationRequestId: that one, else the first that is open."""

    walletId: Id
    walletKey: WalletKey
    holderDid: Did
    presentationRequestId: Id = 0


class PolledPR(Model):
    """Answer of pollPresentationRequest: the definition, and beside it what the presentation must be bound to.

    verifierDid: the presentation's `aud`. pending: how many requests are open.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    input_descriptors: list[JsonValue]
    presentationRequestId: int
    nonce: str
    verifierDid: str
    purpose: str
    endpoint: str
    expiresAt: str
    pending: int


class SubmitPresentation(ScopedIfGiven):
    """Body of submitPresentation. presentation: a VP-JWT, or a credential or presentation document with the holder's
    proof. decline: says no in its place; it takes the walletKey, or the wallet's own token."""

    walletId: Id
    holderDid: Did
    presentationRequestId: Id
    presentation: str | dict[str, JsonValue] | None = None
    decline: Flag = False
    walletKey: WalletKey | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "SubmitPresentation":
        if not self.decline and not self.presentation:
            raise unfit("presentation is needed, or decline", "presentation")
        return self


class CreatePresentation(ScopedIfGiven):
    """Body of createPresentation: for a holder whose key is kept here, sealed under the walletKey."""

    walletId: Id
    walletKey: WalletKey
    holderDid: Did
    presentationRequestId: Id


class PresentationCreated(Model):
    """Answer of createPresentation. presentation: a VP-JWT, to be submitted."""

    code: int = 200
    status: str = "Success"
    message: str
    presentation: str


class PresentationStatus(ScopedIfGiven):
    """Body of presentationStatus."""

    presentationRequestId: Id


class State(StrEnum):
    """The state of a request in the answer of presentationStatus."""

    PENDING = "Pending"
    ACCEPTED = "Accepted"
    DECLINED = "Declined"
    EXPIRED = "Expired"
    WITHDRAWN = "Withdrawn"


class PresentationStanding(Model):
    """Answer of presentationStatus. at: when the request came into this state, ISO 8601."""

    code: int = 200
    message: str
    status: State
    at: str
    presentationRequestId: int
    holderDid: str


class Status(StrEnum):
    """How a request stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request to be. issuer_did: whose credential is asked for, and who verifies it: the presentation's audience.
    schema_id 0: any. challenge_id: of the login that it is for."""

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
    """A request as it is stored. Times in microseconds."""

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
        """Whether it may still be answered."""
        return self.status == Status.OPEN and now < self.expires_at

    def standing(self, now: int) -> "Standing":
        """Return the request's state at a time, and since when it has been in this state."""
        if self.is_open(now):
            return Standing(self, State.PENDING, self.created_at)
        if self.status == Status.OPEN:
            return Standing(self, State.EXPIRED, self.expires_at)
        return Standing(self, State(self.status.capitalize()), self.answered_at or self.created_at)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a request. since: in microseconds."""

    request: Request
    state: State
    since: int

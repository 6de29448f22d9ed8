"""Requests and answers of the operations of presentations."""

from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from sallyport.areas.did.dids.bodies import HolderDid, IssuerDid
from sallyport.areas.did.presentations.request import Listed, State
from sallyport.areas.did.wallets.bodies import WalletId, WalletKey
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import Flag, Id, LongText, Name, OfDomain, PlainText, ScopedIfGiven, Text, Whole

NO_GROUP = frozenset({"", "false", "no", "0", "none"})
MAX_LISTED = 100
"""Maximum number of requests in an answer of listPresentations."""
RequestId = Annotated[
    Id, Field(description="Id of the presentation request, as issuePR or pollPresentationRequest returns it.")
]


def _operation(value: object) -> object:
    if isinstance(value, bool):
        return str(value)
    return "" if value is None else value


class IssuePR(ScopedIfGiven):
    """Request body of the operation `issuePR`."""

    username: Text = Field(
        default="", description="epmUsername that the credential must have. Leave it empty to accept any user name."
    )
    issuerDid: IssuerDid
    holderDid: Annotated[PlainText, Field(max_length=2048)] = Field(
        default="", description="DID of the holder. Required if groupop is empty."
    )
    walletUrl: LongText = Field(
        default="", description="URL of the wallet, as information. The service does not connect to it."
    )
    endpoint: Name = Field(description="Name or id of the instance or group to which the user wants access.")
    groupop: Annotated[Text, BeforeValidator(_operation)] = Field(
        default="",
        validation_alias=AliasChoices("groupop", "grouop"),
        description=(
            "Any text, such as yes, asks all holders of the group in endpoint. If the text is empty, false, "
            "no, none or 0, only holderDid is asked."
        ),
    )

    @property
    def of_group(self) -> bool:
        """Return whether the request is for all holders of a group."""
        return self.groupop.strip().lower() not in NO_GROUP

    @model_validator(mode="after")
    def _has_a_holder(self) -> "IssuePR":
        if not self.of_group and not self.holderDid:
            raise unfit("holderDid or groupop is needed", "holderDid")
        return self


class IssuedPR(Model):
    """An issued request."""

    prId: int = Field(description="Id of the presentation request.")
    walletId: int = Field(description="Id of the holder's wallet.")
    holderDid: str = Field(description="DID of the holder.")


class PRsIssued(Done):
    """Response body of the operation `issuePR`."""

    prs: list[IssuedPR] = Field(description="Issued requests: one for each holder.")


class PollPR(ScopedIfGiven):
    """Request body of the operation `pollPresentationRequest`."""

    walletId: WalletId
    walletKey: WalletKey
    holderDid: HolderDid
    presentationRequestId: Id = Field(default=0, description="Id of a request, or 0 for the oldest open request.")


class PolledPR(Model):
    """Response body of the operation `pollPresentationRequest`: the definition of the wanted credential, and the values
    to sign."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(description="Id of the presentation definition (DIF Presentation Exchange 2.1.1).")
    input_descriptors: list[JsonValue] = Field(description="Input descriptors of the definition.")
    presentationRequestId: int = Field(description="Id of the presentation request.")
    nonce: str = Field(description="Value for nonce in a VP-JWT, or for challenge in a proof.")
    verifierDid: str = Field(description="Value for aud in a VP-JWT, or for domain in a proof.")
    purpose: str = Field(description="Reason of the request, shown to the wallet's user.")
    endpoint: str = Field(
        description="Name of the instance or group to which the user wants access. It is empty for a login."
    )
    expiresAt: str = Field(description="Time at which the request expires, ISO 8601.")
    pending: int = Field(description="Number of open requests of the wallet, including this request.")


class SubmitPresentation(ScopedIfGiven):
    """Request body of the operation `submitPresentation`."""

    walletId: WalletId
    holderDid: HolderDid
    presentationRequestId: RequestId
    presentation: str | dict[str, JsonValue] | None = Field(
        default=None,
        description=(
            "VP-JWT, or a document (credential or presentation) with the holder's proof. It has at most 64 KiB."
        ),
    )
    decline: Flag = Field(default=False, description="true: decline the request, without a presentation.")
    walletKey: WalletKey | None = Field(
        default=None, description="Key of the wallet. Required to decline, unless the token is the wallet's own token."
    )

    @model_validator(mode="after")
    def _has_an_answer(self) -> "SubmitPresentation":
        if not self.decline and not self.presentation:
            raise unfit("presentation or decline is needed", "presentation")
        return self


class CreatePresentation(ScopedIfGiven):
    """Request body of the operation `createPresentation`, for a holder whose key the service keeps."""

    walletId: WalletId
    walletKey: WalletKey
    holderDid: HolderDid
    presentationRequestId: RequestId


class PresentationCreated(Done):
    """Response body of the operation `createPresentation`."""

    presentation: str = Field(description="VP-JWT, to be submitted with submitPresentation.")


class PresentationStatus(ScopedIfGiven):
    """Request body of the operation `presentationStatus`."""

    presentationRequestId: RequestId


class ListPresentations(OfDomain):
    """Body of the operation `listPresentations`."""

    before: Id = Field(
        default=0, description="presentationRequestId before which the list begins. 0 begins with the newest."
    )
    pageSize: Annotated[Whole, Between(1, MAX_LISTED)] = Field(
        default=50, description="Maximum number of requests in the answer."
    )


@answer_of(Listed)
class PresentationEntry(Model):
    """A presentation request in a list."""


class PresentationList(Done):
    """Answer of the operation `listPresentations`."""

    requests: list[PresentationEntry] = Field(description="Requests, newest first.")
    before: int = Field(description="Value of `before` for the next part of the list; 0 if this is the last part.")


class PresentationStanding(Model):
    """Response body of the operation `presentationStatus`."""

    code: int = Field(default=200, description="HTTP status of the answer.")
    message: str = Field(description="Result in words.")
    status: State = Field(description="State of the request.")
    at: str = Field(description="Time when the request entered this state, ISO 8601.")
    presentationRequestId: int = Field(description="Id of the presentation request.")
    holderDid: str = Field(description="DID of the holder.")

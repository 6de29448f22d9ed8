"""Requests and answers of the operations of DIDs."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from sallyport.areas.did.crypto.encoding import CURVES, ED25519
from sallyport.areas.did.dids.did import DidKind, Record
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import (
    LONG,
    Id,
    IsMinimum,
    LongSize,
    Many,
    OfDomain,
    PagedByNumber,
    PlainText,
    ScopedIfGiven,
    Text,
    TotalCount,
    Whole,
)

METHODS = ("key", "jwk", "web")
MAX_DELETED = 200
_CURVES = {name.lower().replace("-", ""): name for name in CURVES}
_KINDS = {"issuer": DidKind.ISSUER, "user": DidKind.USER, "holder": DidKind.USER}


def _method(value: object) -> object:
    method = str(value).strip().lower().removeprefix("did:")
    if method not in METHODS:
        raise unfit("must be key, jwk or web")
    return method


def _kind(value: object) -> object:
    if value is None or value == "":
        return None
    kind = _KINDS.get(str(value).strip().lower())
    if kind is None:
        raise unfit("must be Issuer or User")
    return kind


def _curve(value: object) -> object:
    curve = _CURVES.get(str(value or ED25519.name).strip().lower().replace("-", ""))
    if curve is None:
        raise unfit(f"must be one of {', '.join(CURVES)}")
    return curve


def _issuer(value: object) -> object:
    """Return the id or the DID of an issuer as text. The API accepts both. Return an empty text if the value is 0 or
    None."""
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise unfit("must be the id of an issuer, or its DID")
    return "" if value in {"0", None} else str(value or "")


Did = Annotated[PlainText, Field(min_length=1, max_length=2048)]
IssuerDid = Annotated[Did, Field(description="DID of the issuer, as createIssuerDid returns it.")]
HolderDid = Annotated[Did, Field(description="DID of the holder, as createHolderDid returns it.")]
MethodName = Annotated[str, BeforeValidator(_method), WithJsonSchema({"type": "string", "enum": list(METHODS)})]
CurveName = Annotated[str, BeforeValidator(_curve), WithJsonSchema({"type": "string", "enum": list(CURVES)})]
AnyKind = Annotated[DidKind | None, BeforeValidator(_kind)]
_EITHER = WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})


class CreateIssuerDid(OfDomain):
    """Request body of the operation `createIssuerDid`."""

    method: MethodName = Field(description="DID method. This service publishes the document of a did:web.")
    name: Text = Field(default="", description="Name of the DID in lists and searches.")
    description: Annotated[PlainText, Field(max_length=4096)] = Field(
        default="", description="Text that describes the DID."
    )
    keyType: CurveName = Field(default=ED25519.name, description="Curve of the key.")


class CreateHolderDid(CreateIssuerDid):
    """Request body of the operation `createHolderDid`."""

    walletUserId: Id = Field(default=0, description="Id of the wallet user. Required if publicKeyJwk is absent.")
    issuerId: Annotated[str, BeforeValidator(_issuer), _EITHER] = Field(
        default="",
        description=(
            "Id or DID of the issuer that the holder belongs to. Leave it 0 or"
            " empty if the holder belongs to no issuer."
        ),
    )
    issuerDid: Annotated[str, BeforeValidator(_issuer), _EITHER] = Field(
        default="", description="Other name of issuerId. If both are given, issuerId is used."
    )
    publicKeyJwk: dict[str, JsonValue] | None = Field(
        default=None, description="Public key of the wallet, as a JWK. If it is absent, the service generates a key."
    )

    @property
    def issuer(self) -> str:
        """Return the issuer's id, or else its DID. Return an empty text if both are missing."""
        return self.issuerId or self.issuerDid


class ListDids(OfDomain, PagedByNumber):
    """Request body of the operation `DIDList`."""

    issuerId: Id = Field(
        default=0,
        description=(
            "Id of an issuer. Only the DIDs of the issuer and its holders are listed. Leave it 0 to list all DIDs."
        ),
    )
    userId: Id = Field(
        default=0,
        description="Id of a wallet user. Only the DIDs of this user are listed. Leave it 0 to list all DIDs.",
    )
    pageSize: LongSize = LONG


class SearchDids(ScopedIfGiven, PagedByNumber):
    """Request body of the operation `SearchDID`."""

    name: Annotated[PlainText, Field(max_length=2048)] = Field(
        default="", description="A part of a name, or a whole DID. Leave it empty to list all DIDs of the tenant."
    )
    didType: AnyKind = Field(
        default=None, description="Issuer or User (or Holder), case-insensitive. Leave it empty to list both."
    )
    domainId: Whole | None = Field(
        default=None,
        description=(
            "Id of a domain. Only the DIDs of the domain are listed. If it is absent, the DIDs of all domains of the"
            " tenant are listed."
        ),
    )
    didId: Id = Field(
        default=0, description="Id of a DID's record. Only this DID is listed. Leave it 0 to list all DIDs."
    )

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class DeletedDid(ScopedIfGiven):
    """A DID to delete."""

    type: Annotated[DidKind, BeforeValidator(_kind)] = Field(
        description="Issuer or User (or Holder), case-insensitive."
    )
    did: Did = Field(description="The DID.")


class DeleteDids(OfDomain):
    """Request body of the operation `deleteDid`."""

    dids: Annotated[Many[DeletedDid], Field(min_length=1, max_length=MAX_DELETED)] = Field(
        description="DIDs to delete. If a DID cannot be deleted, no DID is deleted."
    )


class RotateKey(OfDomain):
    """Request body of the operation `rotateKey`."""

    did: Did = Field(description="DID of an issuer with the method web.")


class DidCreated(Done):
    """Response body of the operation `createHolderDid`."""

    id: str = Field(description="The DID.")
    didId: int = Field(description="Id of the DID's record.")


class IssuerCreated(DidCreated):
    """Response body of the operation `createIssuerDid`."""

    issuerId: int = Field(description="Id of the issuer: the same as didId.")


class KeyRotated(Done):
    """Response body of the operation `rotateKey`."""

    verificationMethod: str = Field(description="Id of the new key's verification method.")


@answer_of(Record)
class _Described(Model):
    """A DID in lists."""


class DidEntry(_Described):
    """A DID in the answer of DIDList."""

    lastYpdatedAt: str = Field(description="Time of the last change, DD-MM-YYYY HH:MM:SS in UTC.")


class FoundDid(_Described):
    """A DID that SearchDID finds."""

    lastUpdatedAt: str = Field(description="Time of the last change, DD-MM-YYYY HH:MM:SS in UTC.")


class DidsFound(Model):
    """Response body of the operation `SearchDID`."""

    count: TotalCount
    totalIsMinimum: IsMinimum = False
    didList: list[FoundDid] = Field(description="DIDs on this page.")

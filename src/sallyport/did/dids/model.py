"""What a DID is, in the service and in the interface."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from sallyport.base.clock import from_us
from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.did.crypto.keys import CURVES, ED25519
from sallyport.web.paging import LONG, IsMinimum, LongSize, PagedByNumber
from sallyport.web.scope import Id, Many, OfDomain, PlainText, ScopedIfGiven, Text

METHODS = ("key", "jwk", "web")
MAX_DELETED = 200
_CURVES = {name.lower().replace("-", ""): name for name in CURVES}


class Kind(StrEnum):
    """Whose DID it is."""

    ISSUER = "Issuer"
    USER = "User"


_KINDS = {"issuer": Kind.ISSUER, "user": Kind.USER, "holder": Kind.USER}


def _method(value: object) -> object:
    method = str(value).strip().lower().removeprefix("did:")
    if method not in METHODS:
        raise unfit("key, jwk or web")
    return method


def _kind(value: object) -> object:
    if value is None or value == "":
        return None
    kind = _KINDS.get(str(value).strip().lower())
    if kind is None:
        raise unfit("Issuer or User")
    return kind


def _curve(value: object) -> object:
    curve = _CURVES.get(str(value or ED25519.name).strip().lower().replace("-", ""))
    if curve is None:
        raise unfit(", ".join(CURVES))
    return curve


def _issuer(value: object) -> object:
    """0, the id of an issuer's DID, or the DID: the interface names it in both ways."""
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise unfit("the id of an issuer, or its DID")
    return "" if value in {"0", None} else str(value or "")


Did = Annotated[PlainText, Field(min_length=1, max_length=2048)]
MethodName = Annotated[str, BeforeValidator(_method)]
CurveName = Annotated[str, BeforeValidator(_curve)]
AnyKind = Annotated[Kind | None, BeforeValidator(_kind)]


class _NewDid(OfDomain):
    method: MethodName
    name: Text = ""
    description: Annotated[PlainText, Field(max_length=4096)] = ""
    keyType: CurveName = ED25519.name


class CreateIssuerDid(_NewDid):
    """Body of createIssuerDid. keyType: Ed25519, P-256 or secp256k1."""


class CreateHolderDid(_NewDid):
    """Body of createHolderDid. publicKeyJwk: of a key that the wallet keeps; without it the key is kept here."""

    walletUserId: Id = 0
    issuerId: Annotated[str, BeforeValidator(_issuer)] = ""
    issuerDid: Annotated[str, BeforeValidator(_issuer)] = ""
    publicKeyJwk: dict[str, JsonValue] | None = None

    @property
    def issuer(self) -> str:
        """The issuer's id or DID, whichever is given; empty for none."""
        return self.issuerId or self.issuerDid


class ListDids(OfDomain, PagedByNumber):
    """Body of DIDList; 0 is any."""

    issuerId: Id = 0
    userId: Id = 0
    pageSize: LongSize = LONG


class SearchDids(ScopedIfGiven, PagedByNumber):
    """Body of SearchDID. name: a part of a name, or a whole DID."""

    name: Annotated[PlainText, Field(max_length=2048)] = ""
    didType: AnyKind = None


class DeletedDid(ScopedIfGiven):
    """One DID to delete."""

    type: Annotated[Kind, BeforeValidator(_kind)]
    did: Did


class DeleteDids(OfDomain):
    """Body of deleteDid."""

    dids: Annotated[Many[DeletedDid], Field(min_length=1, max_length=MAX_DELETED)]


class RotateKey(OfDomain):
    """Body of rotateKey: an issuer's did:web."""

    did: Did


class DidCreated(Model):
    """Answer of createIssuerDid and createHolderDid. id: the DID. didId: its record's id, which is the issuerId of an
    issuer."""

    id: str
    code: int = 200
    message: str
    status: str = "Success"
    didId: int


class IssuerCreated(DidCreated):
    """Answer of createIssuerDid."""

    issuerId: int


class KeyRotated(Model):
    """Answer of rotateKey. verificationMethod: the new key's."""

    code: int = 200
    status: str = "Success"
    message: str
    verificationMethod: str


class _Described(Model):
    """A DID as lists describe it. issuerId: its own, or of the issuer that a holder belongs to; 0: none."""

    id: int
    DIDType: Kind
    didType: Kind
    domainId: int
    did: str
    issuerName: str
    credentialIssued: int
    desc: str
    method: str
    issuerId: int
    walletUserId: int


class DidEntry(_Described):
    """A DID in the list."""

    lastYpdatedAt: str


class FoundDid(_Described):
    """A DID that SearchDID finds."""

    lastUpdatedAt: str


class DidsFound(Model):
    """Answer of SearchDID."""

    count: int
    totalIsMinimum: IsMinimum = False
    didList: list[FoundDid]


@dataclass(frozen=True, slots=True)
class NewDid:
    """What somebody says of a new DID. curve: its name."""

    domain_id: int
    method: str
    name: str
    description: str
    curve: str


@dataclass(frozen=True, slots=True)
class Record:
    """A DID as it is stored. issuer_id: of a holder the issuer it belongs to. wallet_id: of the wallet that has it.
    issuer_name: of the issuer itself, or the holder's. Times in microseconds."""

    id: int
    tenant_id: int
    domain_id: int
    did: str
    kind: str
    method: str
    name: str
    description: str
    wallet_id: int | None
    issuer_id: int | None
    issuer_name: str
    credentials_issued: int
    updated_at: int
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as it is stored. sealed: None where a wallet keeps it."""

    id: int
    did_id: int
    method_id: str
    multikey: str
    sealed: bytes | None
    state: str


def spoken(at: int) -> str:
    """Microseconds as NN-NN-YYYY HH:MM:SS: day, month, year, in UTC."""
    return from_us(at).strftime("%d-%m-%Y %H:%M:%S")

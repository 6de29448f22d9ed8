"""Where a credential's status is told, and what a list says of it (W3C StatusList2021).

A list counts for the credentials of its own issuer alone: a list of somebody else's says nothing, and where nothing is
said the credential does not hold.
"""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND, iso_seconds
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from sallyport.did.crypto import bitstring
from sallyport.did.crypto.vc import CONTEXT, CREDENTIAL, Credential

LIST_CONTEXT: Final = "https://w3id.org/vc/status-list/2021/v1"
ENTRY: Final = "StatusList2021Entry"
LIST: Final = "StatusList2021Credential"
PURPOSE: Final = "revocation"
LIFETIME: Final = 86_400 * SECOND
"""Of a list: an old one cannot be shown for long."""


@dataclass(frozen=True, slots=True)
class Entry:
    """list_url: of the list's credential. index: the bit."""

    list_url: str
    index: int


def entry(list_url: str, index: int) -> dict[str, JSON]:
    """The `credentialStatus` of a credential."""
    return {
        "id": f"{list_url}#{index}",
        "type": ENTRY,
        "statusPurpose": PURPOSE,
        "statusListIndex": str(index),
        "statusListCredential": list_url,
    }


def read(document: dict[str, JSON]) -> Entry | None:
    """Where a credential's status is told; None: nowhere, it cannot be revoked. CredentialError `status`: it is told in
    a way that is not known here."""
    said = document.get("credentialStatus")
    if said is None:
        return None
    if not isinstance(said, dict) or said.get("type") != ENTRY or said.get("statusPurpose") != PURPOSE:
        raise CredentialError("the credential's status is of a kind that is not known here", "status")
    url, index = said.get("statusListCredential"), said.get("statusListIndex")
    if not isinstance(url, str) or not isinstance(index, str) or not (index.isascii() and index.isdecimal()):
        raise CredentialError("the credential's status names no entry", "status")
    if len(index) > 9:
        raise CredentialError("the status list has no such entry", "status")
    return Entry(url, int(index))


def list_document(list_url: str, issuer: str, bits: bytes, at: int) -> dict[str, JSON]:
    """The credential of a list. at: microseconds."""
    return {
        "@context": [CONTEXT, LIST_CONTEXT],
        "id": list_url,
        "type": [CREDENTIAL, LIST],
        "issuer": issuer,
        "issuanceDate": iso_seconds(at),
        "expirationDate": iso_seconds(at + LIFETIME),
        "credentialSubject": {
            "id": f"{list_url}#list",
            "type": "StatusList2021",
            "statusPurpose": PURPOSE,
            "encodedList": bitstring.pack(bits),
        },
    }


def check(wanted: Entry, listed: Credential, issuer: str) -> None:
    """Look a credential's entry up in a list that was verified. issuer: of the credential.

    CredentialError: `revoked`; `status`: the list is another one, of another issuer, or none.
    """
    subject, kinds = listed.document.get("credentialSubject"), listed.document.get("type")
    if listed.issuer != issuer or listed.id != wanted.list_url or not isinstance(kinds, list) or LIST not in kinds:
        raise CredentialError("the status list is not the issuer's", "status")
    if not isinstance(subject, dict) or subject.get("statusPurpose") != PURPOSE:
        raise CredentialError("the status list is for another purpose", "status")
    if bitstring.get(bitstring.unpack(str(subject.get("encodedList"))), wanted.index):
        raise CredentialError("revoked", "revoked")

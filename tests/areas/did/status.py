"""A verifier of status lists (W3C StatusList2021, section 3.2), as relying parties implement it."""

import gzip
from dataclasses import dataclass

from sallyport.areas.did.crypto.encoding import from_base64url
from sallyport.areas.did.crypto.vc import Credential
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON


@dataclass(frozen=True)
class Entry:
    """Where the status of a credential is. url: the URL of the status list. index: the position of the bit."""

    url: str
    index: int


def entry_of(document: dict[str, JSON]) -> Entry:
    """Return the URL and the index under which the status of a credential document is published."""
    status = document["credentialStatus"]
    assert isinstance(status, dict)
    assert (status["type"], status["statusPurpose"]) == ("StatusList2021Entry", "revocation")
    return Entry(str(status["statusListCredential"]), int(str(status["statusListIndex"])))


def check(entry: Entry, listed: Credential, issuer: str) -> None:
    """Check the bit of an entry in a verified list. issuer: the issuer of the credential. Raises CredentialError with
    `revoked`, or with `status` if the list has another issuer or URL.
    """
    subject, kinds = listed.document["credentialSubject"], listed.document["type"]
    if (listed.issuer, listed.id) != (issuer, entry.url) or "StatusList2021Credential" not in str(kinds):
        raise CredentialError("the status list is not the issuer's", "status")
    assert isinstance(subject, dict)
    assert (subject["type"], subject["statusPurpose"]) == ("StatusList2021", "revocation")
    octets = unpacked(str(subject["encodedList"]))
    if octets[entry.index >> 3] & (0x80 >> (entry.index & 7)):
        raise CredentialError("revoked", "revoked")


def unpacked(text: str) -> bytes:
    """Return the octets that an encoded list contains."""
    return gzip.decompress(from_base64url(text))

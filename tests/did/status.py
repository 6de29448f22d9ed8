"""A verifier of status lists (W3C StatusList2021, section 3.2), as a relying party has one."""

import gzip
from dataclasses import dataclass

from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from sallyport.did.crypto.encoding import from_base64url
from sallyport.did.crypto.vc import Credential


@dataclass(frozen=True)
class Entry:
    """The place of a credential's status. url: of the list's credential. index: the bit."""

    url: str
    index: int


def entry_of(document: dict[str, JSON]) -> Entry:
    """Return where the status of a credential document is published."""
    status = document["credentialStatus"]
    assert isinstance(status, dict)
    assert (status["type"], status["statusPurpose"]) == ("StatusList2021Entry", "revocation")
    return Entry(str(status["statusListCredential"]), int(str(status["statusListIndex"])))


def check(entry: Entry, listed: Credential, issuer: str) -> None:
    """Look an entry up in a verified list. issuer: of the credential. CredentialError `revoked`; `status`: the list is
    not the issuer's, or another one."""
    subject, kinds = listed.document["credentialSubject"], listed.document["type"]
    if (listed.issuer, listed.id) != (issuer, entry.url) or "StatusList2021Credential" not in str(kinds):
        raise CredentialError("the status list is not the issuer's", "status")
    assert isinstance(subject, dict)
    assert (subject["type"], subject["statusPurpose"]) == ("StatusList2021", "revocation")
    octets = unpacked(str(subject["encodedList"]))
    if octets[entry.index >> 3] & (0x80 >> (entry.index & 7)):
        raise CredentialError("revoked", "revoked")


def unpacked(text: str) -> bytes:
    """Return the octets of an encoded list."""
    return gzip.decompress(from_base64url(text))

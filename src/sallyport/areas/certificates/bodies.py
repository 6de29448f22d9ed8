"""Request and response bodies of /ad/...ServerCertificate(s)."""

from typing import Annotated, Final

from pydantic import Field

from sallyport.areas.certificates.certificate import MAX_CHARACTERS, REALM, CertificateEntry
from sallyport.base.model import Done, Model, Success, answer_of
from sallyport.certs.supplicants import Supplicant, Verdict
from sallyport.outgoing.fields import Certificates, KeyText
from sallyport.web.bodies import InDomain, Text

CHAIN: Final = (
    "Certificate of the server in PEM, followed by the intermediate certificates. The root is not needed, and makes "
    "each login longer."
)


class _OfRealm(InDomain):
    realm: Text = Field(default="", description=REALM)


class SetServerCertificate(_OfRealm):
    """Request body of the operation `SetServerCertificate`."""

    certificate: Annotated[Certificates, Field(min_length=1, max_length=MAX_CHARACTERS)] = Field(description=CHAIN)
    privateKey: KeyText = Field(
        description="Key of the server's certificate in PEM, without a passphrase; never returned."
    )


class ListServerCertificates(InDomain):
    """Request body of the operation `ListServerCertificates`."""


class RemoveServerCertificate(_OfRealm):
    """Request body of the operation `RemoveServerCertificate`."""


class CheckServerCertificate(_OfRealm):
    """Request body of the operation `CheckServerCertificate`."""

    certificate: Annotated[Certificates, Field(max_length=MAX_CHARACTERS)] = Field(
        default="",
        description="Chain in PEM to check before it is set. Empty: the certificate of the domain for the realm.",
    )
    serverName: Text = Field(
        default="", description="Server name in the profiles of the supplicants. Empty: names are not compared."
    )


@answer_of(CertificateEntry)
class ServerCertificateEntry(Model):
    """A server certificate of a domain."""


class ServerCertificateList(Success):
    """Response body of the operation `ListServerCertificates`."""

    certificates: list[ServerCertificateEntry] = Field(
        description="Server certificates of the domain, ordered by realm. Empty: the domain uses that of the "
        "installation."
    )


class ServerCertificateSet(Done):
    """Response body of the operation `SetServerCertificate`."""

    warnings: list[str] = Field(description="What supplicants refuse about the certificate; empty if nothing.")


class RemarkEntry(Model):
    """What a kind of supplicant says about a certificate."""

    supplicant: Supplicant = Field(description="Kind of the supplicant.")
    verdict: Verdict = Field(
        description="`refuses`: the login fails. `may refuse`: it fails with some versions or settings. `note`: it "
        "works."
    )
    text: str = Field(description="Finding about the certificate, as a sentence.")


class ServerCertificateChecked(Success):
    """Response body of the operation `CheckServerCertificate`."""

    remarks: list[RemarkEntry] = Field(description="What each kind of supplicant says, the worst first.")

"""What the first factor `radius` is configured with."""

import os
import ssl
from typing import Annotated, Final, Self

from pydantic import Field, SecretStr, model_validator

from sallyport.base.validation import unfit
from sallyport.directory.reading.fields import Certificates
from sallyport.login.first.model import CodeDigits, Fields
from sallyport.outgoing.fields import HostName, SharedKey
from sallyport.web.scope import Flag

RADSEC_PORT: Final = 2083
RADSEC_SECRET: Final = "radsec"  # noqa: S105  no secret: the RFC prints it
"""What both sides take over TLS, where the certificates prove who is there (RFC 6614 section 2.3)."""


class TlsFields(Fields):
    """RADIUS over TLS. clientCertificate, clientKey: in PEM, shown to the server. caCertificate: in PEM, trusted in
    place of the system's store. serverName: in the server's certificate, where that is not its host."""

    clientCertificate: Certificates  # noqa: N815
    clientKey: Annotated[SecretStr, Field(max_length=65_536)]  # noqa: N815
    caCertificate: Certificates | None = None  # noqa: N815
    serverName: HostName | None = None  # noqa: N815

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        if "PRIVATE KEY" in self.clientCertificate:  # it is shown, and the key is not
            raise unfit("a certificate, and its key as clientKey")
        try:
            self.context()
        except (OSError, ssl.SSLError):
            raise unfit("a certificate and its key in PEM") from None
        return self

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer, the server's name checked, our certificate shown (RFC 6614 section 2.3)."""
        made = ssl.create_default_context(cadata=self.caCertificate)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        kept = os.memfd_create("certificate", os.MFD_CLOEXEC)  # ssl reads files alone, and a key belongs in none
        try:
            os.write(kept, f"{self.clientCertificate}\n{self.clientKey.get_secret_value()}\n".encode())
            made.load_cert_chain(f"/proc/self/fd/{kept}", password=lambda: "")
        finally:
            os.close(kept)
        return made


class HomeServerFields(Fields):
    """One server. tls: it is spoken to over TLS (RadSec), by default at port 2083 and with the secret `radsec`."""

    host: HostName
    port: Annotated[int, Field(ge=1, le=65535)] = 1812
    secret: SharedKey
    tls: TlsFields | None = None

    @model_validator(mode="before")
    @classmethod
    def _radsec(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("tls"):
            return {"port": RADSEC_PORT, "secret": RADSEC_SECRET, **given}
        return given


class UpstreamFields(Fields):
    """The servers that a domain's logins go to.

    servers: in the order in which they are asked; where `loadBalance` is set, all that are alive share the logins.
    responseWindowSeconds: how long a server has for its answer. statusCheck: whether a server that does not answer is
    sent Status-Server (RFC 5997) until it does. requireMessageAuthenticator: an answer without one is dropped, since
    anybody on the way can forge it (BlastRADIUS, CVE-2024-3596). stripRealm: the realm is taken off User-Name.
    codeDigits: how long a code behind a PAP password is.
    """

    servers: Annotated[list[HomeServerFields], Field(min_length=1, max_length=8)]
    responseWindowSeconds: Annotated[float, Field(ge=1, le=60)] = 20.0  # noqa: N815
    loadBalance: Flag = False  # noqa: N815
    statusCheck: Flag = True  # noqa: N815
    requireMessageAuthenticator: Flag = True  # noqa: N815
    stripRealm: Flag = False  # noqa: N815
    codeDigits: CodeDigits = 6  # noqa: N815

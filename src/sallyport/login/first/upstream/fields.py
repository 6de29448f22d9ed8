"""The configuration of the first factor `radius`."""

import ssl
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from sallyport.base.errors import FieldError
from sallyport.base.validation import Between, unfit
from sallyport.login.first.model import CodeDigits, Fields, Host
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.fields import HostName, SharedKey
from sallyport.outgoing.pem import Certificates, KeyText
from sallyport.outgoing.tls import client_context, show_certificate
from sallyport.web.scope import Flag

RADSEC_PORT: Final = 2083
RADSEC_SECRET: Final = "radsec"  # noqa: S105  no secret: the RFC prints it
"""What both sides take over TLS, where the certificates prove who is there (RFC 6614 section 2.3)."""


class TlsFields(Fields):
    """RADIUS over TLS. clientCertificate, clientKey: in PEM, shown to the server. caCertificate: in PEM, trusted in
    place of the system's store. serverName: the name in the server's certificate if it is not its host."""

    clientCertificate: Certificates  # noqa: N815
    clientKey: KeyText  # noqa: N815
    caCertificate: Certificates | None = None  # noqa: N815
    serverName: HostName | None = None  # noqa: N815

    @model_validator(mode="after")
    def _has_no_key_in_the_certificate(self) -> Self:
        if "PRIVATE KEY" in self.clientCertificate:  # GetFirstFactor returns the certificate
            raise unfit("a certificate, and its key as clientKey", "clientCertificate")
        return self

    def context(self) -> ssl.SSLContext:
        """Return a context of TLS 1.2 or newer that checks the server's name and shows our certificate (RFC 6614
        section 2.3). PemError, ssl.SSLError. Call it in a worker thread: it takes up to 100 ms."""
        made = client_context(self.caCertificate)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        show_certificate(made, self.clientCertificate, self.clientKey.get_secret_value())
        return made

    def why_unusable(self) -> FieldError | None:
        """Return the field that no context can be made of."""
        try:
            self.context()
        except ssl.SSLError:
            return FieldError("clientCertificate", "a certificate and its key in PEM")
        except PemError as error:
            return FieldError("clientKey", str(error))
        return None


class HomeServerFields(Fields):
    """One server. tls: it is spoken to over TLS (RadSec), by default at port 2083 and with the secret `radsec`."""

    host: HostName
    port: Annotated[int, Between(1, 65535)] = 1812
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
    responseWindowSeconds: Annotated[float, Between(1, 60)] = 20.0  # noqa: N815
    loadBalance: Flag = False  # noqa: N815
    statusCheck: Flag = True  # noqa: N815
    requireMessageAuthenticator: Flag = True  # noqa: N815
    stripRealm: Flag = False  # noqa: N815
    codeDigits: CodeDigits = 6  # noqa: N815

    def refused(self, host: Host) -> FieldError | None:
        """Return the first field of a server's TLS that cannot be used."""
        for number, server in enumerate(self.servers):
            wrong = None if server.tls is None else server.tls.why_unusable()
            if wrong is not None:
                return FieldError(f"servers.{number}.tls.{wrong.field}", wrong.message)
        return None

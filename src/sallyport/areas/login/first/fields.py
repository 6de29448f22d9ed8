"""The configuration fields of the first factors `ldap` and `radius`, and their validation.

Commands take their options from the fields, so a checker is imported only when it is made.
"""

from __future__ import annotations

import ssl
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from sallyport.areas.directory.directory import in_clear
from sallyport.areas.directory.reading.fields import LdapUrl, Line, Name
from sallyport.areas.directory.reading.requests import encoded_filter
from sallyport.areas.login.first.checker import ASSERTION, CODE_LENGTHS, USER, Checker, Host
from sallyport.base.errors import FieldError
from sallyport.base.model import SentModel, Unknown
from sallyport.base.validation import Between, unfit
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.fields import Certificates, HostName, KeyText, SharedKey
from sallyport.radius.packet import SharedSecret
from sallyport.web.bodies import Flag

if TYPE_CHECKING:
    from sallyport.areas.login.first.ldap.checker import Ldap
    from sallyport.areas.login.first.upstream.checker import HomeServerSettings, Upstream
    from sallyport.areas.login.first.upstream.link import TlsSettings

DEFAULT_FILTER: Final = "(|(sAMAccountName={user})(uid={user})(userPrincipalName={user}))"
RADSEC_PORT: Final = 2083
RADSEC_SECRET: Final = "radsec"  # noqa: S105  no secret: the RFC prints it
"""The shared secret that RADIUS over TLS prescribes. It protects nothing, because certificates identify the peers (RFC
6614 section 2.3)."""


def _digits(value: int) -> int:
    if value not in CODE_LENGTHS:
        raise unfit("must be 6 or 8")
    return value


CodeDigits = Annotated[int, AfterValidator(_digits), Field(json_schema_extra={"enum": list(CODE_LENGTHS)})]
CODE_DIGITS: Final = "Number of digits of a code that users append to the password."
_TRUSTED: Final = "caCertificate (--ca-certificate FILE)"


class _Strict(SentModel):
    """A model that refuses unknown fields, so that a misspelled field is noticed."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    unknown: ClassVar[Unknown] = Unknown.REFUSED


class Fields(_Strict):
    """The configuration of one kind of first factor, with the field names of the API. Secrets are of type SecretStr, so
    that no answer contains them."""

    @abstractmethod
    def checker(self, host: Host) -> Checker:
        """Return a new checker with this configuration. It has no connection yet."""

    def refused(self, host: Host) -> FieldError | None:
        """Return an error for a field that cannot be used in this domain. Return None if all fields can be used."""
        return None

    def hosts(self) -> list[str]:
        """Return the hosts of the servers, in their order."""
        return []


def _filter(value: str) -> str:
    value = value.strip()
    held = ASSERTION.findall(value)
    depth = 0
    for character in value[:-1]:
        depth += (character == "(") - (character == ")")
        if depth < 1:
            break
    if depth != 1 or value[-1:] != ")" or not value.isprintable():
        raise unfit("must be an LDAP filter in parentheses")
    if not held or value.count(USER) != sum(pattern.count(USER) for _, pattern in held):
        raise unfit("must be an LDAP filter that compares an attribute with {user}, such as (uid={user})")
    if any(pattern.count(USER) > 1 for _, pattern in held):
        raise unfit("must be an LDAP filter with {user} at most once in each comparison")
    if any("*" in pattern or "\\" in pattern for _, pattern in held):
        raise unfit("must be an LDAP filter without * and \\ next to {user}, because a name must find one entry")
    try:
        encoded_filter(value.replace(USER, "user"))
    except ValueError:
        raise unfit("must be an LDAP filter, such as (&(uid={user})(memberOf=cn=vpn,dc=example))") from None
    return value


class LdapFields(Fields):
    """The configuration of a directory.

    `userFilter` compares one or more attributes with {user}. The first of these attributes that an entry has contains
    the entry's canonical name.
    """

    servers: Annotated[tuple[LdapUrl, ...], Field(min_length=1, max_length=8)] = Field(
        description="URLs of the directory's servers, in the order in which they are asked."
    )
    baseDN: Name = Field(description="Distinguished name of the subtree in which users are searched.")  # noqa: N815
    bindDN: Line | None = Field(  # noqa: N815
        default=None,
        description="Distinguished name of the service account that searches for users. Without it, the"
        " search is anonymous.",
    )
    bindPassword: SharedKey | None = Field(default=None, description="Password of bindDN; never returned.")  # noqa: N815
    userFilter: Annotated[str, Field(max_length=2048), AfterValidator(_filter)] = Field(  # noqa: N815
        default=DEFAULT_FILTER, description="Filter that finds a user; {user} is replaced by the name."
    )
    startTls: Flag = Field(default=False, description="Encrypt ldap:// connections by StartTLS.")  # noqa: N815
    caCertificate: Certificates | None = Field(  # noqa: N815
        default=None, description="Trusted certificates in PEM, in place of the system's store."
    )
    cacheSeconds: Annotated[int, Between(0, 300)] = Field(  # noqa: N815
        default=0, description="Time for which a correct password is cached, in seconds."
    )
    winbind: Flag = Field(default=False, description="Check MS-CHAP through the winbind of the host.")
    winbindDomain: Annotated[str, Field(max_length=255, pattern="^[A-Za-z0-9._-]*$")] = Field(  # noqa: N815
        default="", description="Name of the Active Directory domain. Default: the domain that the host has joined."
    )
    codeDigits: CodeDigits = Field(default=6, description=CODE_DIGITS)  # noqa: N815
    timeoutSeconds: Annotated[int, Between(1, 30)] = Field(  # noqa: N815
        default=5, description="Time limit for the directory in one login, in seconds."
    )

    def refused(self, host: Host) -> FieldError | None:
        """Return an error if winbind is set but the domain's organization may not use it. Otherwise return None."""
        if self.winbind and host.ntlm_auth is None:
            return FieldError(
                "winbind",
                "this organization is not in the setting winbind_orgs, so this organization may not use winbind",
            )
        return None

    def hosts(self) -> list[str]:
        """Return the hosts in the URLs of the servers."""
        return [urlsplit(url).hostname or "" for url in self.servers]

    def checker(self, host: Host) -> Ldap:
        from sallyport.areas.directory.reading.connection import Account
        from sallyport.areas.directory.reading.server import Server
        from sallyport.areas.login.first.ldap.checker import Ldap, LdapSettings

        service = None
        if self.bindDN is not None and self.bindPassword is not None:
            service = Account(self.bindDN, self.bindPassword.get_secret_value())
        settings = LdapSettings(
            servers=tuple(Server(url, self.startTls, _TRUSTED) for url in self.servers),
            base_dn=self.baseDN,
            service=service,
            user_filter=self.userFilter,
            authorities=self.caCertificate,
            remember_s=self.cacheSeconds,
            winbind=self.winbind,
            winbind_domain=self.winbindDomain,
            code_digits=self.codeDigits,
            timeout_s=self.timeoutSeconds,
        )
        return Ldap(settings, host)

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.bindDN is None) != (self.bindPassword is None):
            sentence = "bindDN and bindPassword belong together: give both, or neither"
            raise unfit(sentence, "bindDN", "bindPassword")
        if not self.startTls and any(in_clear(url) for url in self.servers):
            raise unfit(
                "ldap:// sends passwords unencrypted: use ldaps:// or startTls; without either, only a loopback "
                "address is allowed",
                "servers",
            )
        return self


class TlsFields(_Strict):
    """The TLS configuration of a server for RADIUS over TLS (RFC 6614)."""

    clientCertificate: Certificates = Field(description="Client certificate in PEM, sent to the server.")  # noqa: N815
    clientKey: KeyText = Field(description="Key of the client certificate in PEM; never returned.")  # noqa: N815
    caCertificate: Certificates | None = Field(  # noqa: N815
        default=None, description="Trusted certificates in PEM, in place of the system's store."
    )
    serverName: HostName | None = Field(  # noqa: N815
        default=None, description="Name that the server's certificate must have, if it is not the value of host."
    )

    @model_validator(mode="after")
    def _has_no_key_in_the_certificate(self) -> Self:
        if "PRIVATE KEY" in self.clientCertificate:  # GetFirstFactor returns this field
            raise unfit("must contain only the certificate; set its key in clientKey", "clientCertificate")
        return self

    @property
    def settings(self) -> TlsSettings:
        """The fields as settings of a TLS connection."""
        from sallyport.areas.login.first.upstream.link import TlsSettings

        key = self.clientKey.get_secret_value()
        return TlsSettings(self.clientCertificate, key, self.caCertificate, self.serverName or "")

    def why_unusable(self) -> FieldError | None:
        """Return the error in the field that prevents a TLS context, or None if the certificate and key can be used."""
        try:
            self.settings.context()
        except ssl.SSLError:
            return FieldError("clientCertificate", "must be a certificate in PEM that belongs to clientKey")
        except PemError as error:
            return FieldError("clientKey", str(error))
        return None


class HomeServerFields(_Strict):
    """The configuration of one RADIUS server."""

    host: HostName = Field(description="Name or IP address.")
    port: Annotated[int, Between(1, 65535)] = Field(
        default=1812, description="UDP port. With `tls` it is the TCP port, by default 2083."
    )
    secret: SharedKey = Field(description="Shared secret, never returned. With `tls` it is radsec by default.")
    tls: TlsFields | None = Field(default=None, description="Use TLS (RadSec) instead of UDP, with these certificates.")

    @model_validator(mode="before")
    @classmethod
    def _radsec(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("tls"):
            return {"port": RADSEC_PORT, "secret": RADSEC_SECRET, **given}
        return given

    @property
    def settings(self) -> HomeServerSettings:
        """The fields as settings of the checker."""
        from sallyport.areas.login.first.upstream.checker import HomeServerSettings

        secret = SharedSecret(self.secret.get_secret_value().encode())
        return HomeServerSettings(self.host, self.port, secret, None if self.tls is None else self.tls.settings)


class UpstreamFields(Fields):
    """The configuration of the RADIUS servers to which a domain's logins are forwarded."""

    servers: Annotated[list[HomeServerFields], Field(min_length=1, max_length=8)] = Field(
        description="RADIUS servers, in the order in which they are asked."
    )
    responseWindowSeconds: Annotated[float, Between(1, 60)] = Field(  # noqa: N815
        default=20.0, description="Time in which a server must answer before it is considered dead, in seconds."
    )
    loadBalance: Flag = Field(  # noqa: N815
        default=False, description="Share the logins among all servers that are alive."
    )
    statusCheck: Flag = Field(  # noqa: N815
        default=True, description="Send Status-Server (RFC 5997) to a server that does not answer."
    )
    requireMessageAuthenticator: Flag = Field(  # noqa: N815
        default=True, description="Drop answers without Message-Authenticator, which can be forged (CVE-2024-3596)."
    )
    stripRealm: Flag = Field(default=False, description="Remove the realm from User-Name before a login is forwarded.")  # noqa: N815
    codeDigits: CodeDigits = Field(default=6, description=CODE_DIGITS)  # noqa: N815
    namesInnerUser: Flag = Field(  # noqa: N815
        default=False,
        description="Set this if the servers put the user inside EAP into each Access-Accept. Otherwise the user of a "
        "login by PEAP, TTLS or TLS is unknown if its Access-Accept names no other user than the outer identity.",
    )

    def refused(self, host: Host) -> FieldError | None:
        """Return the first error in the servers' TLS fields, or None if there is none."""
        for number, server in enumerate(self.servers):
            wrong = None if server.tls is None else server.tls.why_unusable()
            if wrong is not None:
                return replace(wrong, field=f"servers.{number}.tls.{wrong.field}")
        return None

    def hosts(self) -> list[str]:
        """Return the hosts of the RADIUS servers."""
        return [each.host for each in self.servers]

    def checker(self, host: Host) -> Upstream:
        from sallyport.areas.login.first.upstream.checker import Upstream, UpstreamSettings

        settings = UpstreamSettings(
            servers=tuple(each.settings for each in self.servers),
            window_s=self.responseWindowSeconds,
            shares_load=self.loadBalance,
            checks_status=self.statusCheck,
            only_signed=self.requireMessageAuthenticator,
            strips_realm=self.stripRealm,
            code_digits=self.codeDigits,
            names_inner_user=self.namesInnerUser,
        )
        return Upstream(settings, host)

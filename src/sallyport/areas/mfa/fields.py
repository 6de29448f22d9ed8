"""The configuration fields of the built-in MFA providers, and their validation.

Commands take their options from the fields, and the form of the console takes its labels from their titles. So this
module imports no provider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from sallyport.areas.mfa.provider import Strength
from sallyport.base.model import SentModel, Unknown
from sallyport.base.validation import Between, unfit
from sallyport.outgoing.fields import Authority, HostName, Key, SecretKey, ServerUrl, SharedKey
from sallyport.settings.identity_provider import is_private

_HEADER: Final = re.compile(r"[\x21-\x7e]+")
_DID: Final = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%-]+")


class Fields(SentModel):
    """The configuration of a provider, with the field names of the API. Secrets are of type SecretStr, so that no
    answer contains them."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    unknown: ClassVar[Unknown] = Unknown.NEAR_MISSES_REFUSED


def _one_word(value: SecretStr) -> SecretStr:
    if not _HEADER.fullmatch(value.get_secret_value()):
        raise unfit("must be an auth token of privacyIDEA, which is ASCII text without spaces")
    return value


# Longer than a SecretKey, because a JWT with all rights of an admin has 4,400 characters.
_AdminToken = Annotated[SecretStr, Field(min_length=1, max_length=8000), AfterValidator(_one_word)]


def _did(value: str) -> str:
    if not _DID.fullmatch(value):
        raise unfit("must be a DID such as did:web:example.com")
    return value


class TotpFields(Fields):
    """The configuration of the provider. It has no fields, because the seeds belong to the users."""


class DuoFields(Fields):
    """The keys and the API host, as Duo's admin panel shows them for an Auth API application.

    For tests, a loopback host with a port is accepted; it is reached by plain HTTP.
    """

    ikey: Key = Field(title="Integration key", description="Integration key.")
    skey: SecretKey = Field(title="Secret key", description="Secret key.")
    host: Authority = Field(title="API host name", description="API host, such as api-0123abcd.duosecurity.com.")


class OktaFields(Fields):
    """The Okta organization. For tests, a loopback host with a port is accepted; it is reached by plain HTTP."""

    domain: Authority = Field(title="Okta domain", description="Domain in Okta, such as example.okta.com.")
    apiToken: SecretKey = Field(title="API token", description="API token.")  # noqa: N815  the interface's spelling


class PrivacyIdeaFields(Fields):
    """The privacyIDEA server, and an optional admin token."""

    url: ServerUrl = Field(title="URL", description="URL of the server.")
    realm: Key = Field(
        default="", title="Realm", description="Realm of the users. Default: the server's default realm."
    )
    adminToken: _AdminToken = Field(  # noqa: N815  the interface's spelling
        default=SecretStr(""),
        title="Admin token",
        description="Admin token with the rights triggerchallenge, tokenlist and cancelchallenge. The last one lets "
        "the service withdraw prompts.",
    )


class WebhookFields(Fields):
    """The URL of the customer's server, and the key that signs requests to it."""

    url: ServerUrl = Field(title="URL", description="URL of the customer's server.")
    secret: SharedKey = Field(title="Shared secret", description="Key with which the service signs its requests.")


class RadiusFields(Fields):
    """The configuration of the RADIUS server."""

    host: HostName = Field(title="Host", description="Name or address of the server.")
    port: Annotated[int, Between(1, 65535)] = Field(default=1812, title="Port", description="UDP port.")
    secret: SharedKey = Field(title="Shared secret", description="Shared secret.")


class Binding(StrEnum):
    """How a proof on the page is bound to the login, see `areas.factors.stepup`."""

    CODE = "code"
    ADDRESS = "address"
    UNBOUND = "unbound"


FACTORS: Final = ("passkey", "oidc", "totp", "bypass", "mail")
"""The factors of a person that the service checks itself, in the order in which a page offers them."""


def _factors(value: str) -> str:
    """Return the names of factors, each once, in the order of FACTORS."""
    names = {each.strip().lower() for each in value.split(",")}
    if not names <= set(FACTORS):
        raise unfit(f"must be one or more of {', '.join(FACTORS)}, separated by commas")
    return ",".join(each for each in FACTORS if each in names)


class UserIs(StrEnum):
    """The meaning of the claim that identifies the person in an ID token."""

    NAME = "name"
    DIRECTORY_ID = "directory_id"


class AuthTime(StrEnum):
    """Whether an ID token must have the claim `auth_time`."""

    REQUIRED = "required"
    OPTIONAL = "optional"


def _issuer(value: str) -> str:
    if value and (not is_private(value) or "?" in value):
        raise unfit("must be an https URL; http is accepted only with the host 127.0.0.1, ::1 or localhost")
    return value


def _claim(value: str) -> str:
    if value == "email":
        raise unfit("must be another claim than email: people may choose it at some providers")
    return value


def _words(value: str) -> str:
    """Return words, each once, separated by commas."""
    words = [each.strip() for each in value.split(",")]
    if value and not all(_HEADER.fullmatch(each) for each in words):
        raise unfit("must be words of ASCII characters, separated by commas")
    return ",".join(dict.fromkeys(words))


def _printable(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise unfit("must be text without control characters")
    return value


class OwnFields(Fields):
    """The factors that the service checks itself, and how a proof is bound to its login."""

    binding: Binding = Field(
        default=Binding.CODE,
        title="Binding",
        description="How a proof on the page is bound to the login: `code` (the user types digits of the page at the "
        "prompt), `address` (the browser has the address of the station) or `unbound` (a forwarded link lets another "
        "person in). Default: code.",
    )
    factors: Annotated[str, Field(max_length=100), AfterValidator(_factors)] = Field(
        default="passkey,totp,bypass",
        title="Factors",
        description="Factors that are accepted, separated by commas: passkey, oidc, totp, bypass, mail. "
        "Default: passkey,totp,bypass.",
    )
    pageByMail: bool = Field(  # noqa: N815
        default=False,
        title="Page by mail",
        description="Send the address of the page by mail to the user of a login that waits at its device, because the "
        "device shows no challenge. Needs the binding address or unbound. Default: false.",
    )
    enrolByChallenge: bool = Field(  # noqa: N815
        default=False,
        title="Link for people without a factor",
        description="Show an enrolment link in the challenge to a person without any factor. It is valid for 10 "
        "minutes, and asks for the password. Anybody who knows only the password of such a person can then enrol. "
        "Default: false.",
    )
    digits: Annotated[int, Between(4, 8)] = Field(
        default=6,
        title="Digits",
        description="Number of digits that the page shows for the binding `code`. Default: 6.",
    )
    changeStrength: Strength = Field(  # noqa: N815
        default=Strength.ANY,
        title="Strength that changes factors",
        description="Strength of the proof with which a person may change the own app or bypass codes at /me: `any`; "
        "`two_channels` for a passkey or a sign-in at the identity provider; `phishing_resistant` for a passkey, or a "
        "sign-in by a method of resistantAmr. A person with a passkey always needs the last one. To add a passkey "
        "always needs it, or an enrolment link. Default: any.",
    )
    ownCodes: Annotated[int, Between(0, 10)] = Field(  # noqa: N815
        default=0,
        title="Bypass codes that people make",
        description="Number of bypass codes (0 to 10) that a person may make at /me, each for one login within a year. "
        "Default: 0, only operators make codes.",
    )
    issuer: Annotated[str, Field(max_length=1000), AfterValidator(_issuer)] = Field(
        default="",
        title="Issuer of the identity provider",
        description="Issuer (URL) of the company's identity provider, with which people sign in for the factor oidc.",
    )
    clientId: Annotated[str, Field(max_length=256, pattern=r"^[\x21-\x7e]*$")] = Field(  # noqa: N815
        default="", title="Client id", description="Client id of this service at the identity provider."
    )
    clientSecret: Annotated[SecretStr, Field(max_length=1024), AfterValidator(_printable)] = Field(  # noqa: N815
        default=SecretStr(""), title="Client secret", description="Secret of this client."
    )
    userClaim: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_:./-]+$"), AfterValidator(_claim)] = Field(  # noqa: N815
        default="preferred_username",
        title="Claim with the user",
        description="Claim of the ID token that identifies the person. Default: preferred_username.",
    )
    userIs: UserIs = Field(  # noqa: N815
        default=UserIs.NAME,
        title="Meaning of the claim",
        description="What the claim has: `name` (the user name of the login) or `directory_id` (the object id of the "
        "user in a cloud directory of the domain, such as the claim oid of Entra ID). Default: name.",
    )
    userSuffix: Annotated[str, Field(max_length=255, pattern=r"^[!-~]*$")] = Field(  # noqa: N815
        default="",
        title="End of the claim that logins omit",
        description="Text at the end of the claim that the user names of logins do not have, such as @example.com. "
        "Other values of the claim are refused. Default: none.",
    )
    authTime: AuthTime = Field(  # noqa: N815
        default=AuthTime.REQUIRED,
        title="Time of the sign-in",
        description="Whether the ID token must prove by auth_time that the person has just signed in: `required`, or "
        "`optional` for providers that do not send it. Default: required.",
    )
    amr: Annotated[str, Field(max_length=200), AfterValidator(_words)] = Field(
        default="",
        title="Demanded methods (amr)",
        description="Methods, separated by commas, of which the person must have used one, such as mfa,hwk. "
        "Default: any.",
    )
    acr: Annotated[str, Field(max_length=500), AfterValidator(_words)] = Field(
        default="",
        title="Demanded classes (acr)",
        description="Authentication context classes, separated by commas, of which the sign-in must have one. "
        "Default: any.",
    )
    resistantAmr: Annotated[str, Field(max_length=200), AfterValidator(_words)] = Field(  # noqa: N815
        default="",
        title="Phishing-resistant methods (amr)",
        description="Methods, separated by commas, that count as phishing-resistant with the binding address, such as "
        "hwk or fido. Default: none.",
    )

    @property
    def has_provider(self) -> bool:
        """Whether people can sign in with an identity provider for the factor oidc."""
        return bool("oidc" in self.factors.split(",") and self.issuer and self.clientId)


class WalletFields(Fields):
    """The fields of the credential that a user must present."""

    issuerDid: Annotated[str, Field(max_length=2048), AfterValidator(_did)] = Field(  # noqa: N815
        title="DID of the issuer", description="DID of the issuer of the required credential."
    )
    schemaId: Annotated[int, Between(1, 2**63 - 1)] | None = Field(  # noqa: N815
        default=None,
        title="Id of the credential schema",
        description="Id of the schema of the required credential. Default: any schema.",
    )


BUILT_IN: Final[Mapping[str, type[Fields]]] = {
    "totp": TotpFields,
    "duo": DuoFields,
    "okta": OktaFields,
    "privacyidea": PrivacyIdeaFields,
    "webhook": WebhookFields,
    "radius": RadiusFields,
    "wallet": WalletFields,
    "own": OwnFields,
}
"""The fields of each built-in provider, by its name."""


def secret_field(fields: type[Fields]) -> str | None:
    """Return the name of the field that has the secret of a provider. Return None if the provider has no secret."""
    return next((name for name, each in fields.model_fields.items() if each.annotation is SecretStr), None)

"""The setting `identity_providers`: the OpenID Connect providers whose users may sign in to the console.

    [identity_providers.company]                        # in sallyport.toml
    title = "Company account"
    issuer = "https://id.example.com/realms/company"
    client_id = "sallyport"
    client_secret_file = "/etc/sallyport/company-secret"
    roles = [
        { group = "netops-root", role = "installation" },
        { group = "netops", role = "operator", org = 1, tenant = 1 },
    ]

Only the administrator of the installation's host can change the setting. It cannot be in the environment, and no tenant
can configure an identity provider.
"""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from sallyport.base.validation import unfit
from sallyport.settings.mail import secret_in, usable_secret

MAX_PROVIDERS: Final = 16
"""Maximum number of identity providers."""
_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,31}")
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_STRICT: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
_Number = Annotated[int, Field(ge=1, le=2**63 - 1, strict=True)]


class GroupRole(BaseModel):
    """The role of the members of a group. org, tenant: the tenant; None for an installation administrator."""

    model_config = _STRICT

    group: str = Field(min_length=1, max_length=256)
    role: Literal["installation", "admin", "operator", "auditor"]
    org: _Number | None = None
    tenant: _Number | None = None

    @model_validator(mode="after")
    def _tenant_fits(self) -> Self:
        wanted = self.role != "installation"
        if (self.org is not None, self.tenant is not None) != (wanted, wanted):
            raise ValueError("org and tenant are required for admin, operator and auditor, and not for installation")
        return self


class IdentityProvider(BaseModel):
    """One identity provider. title: its name for people. roles: the roles of groups; the first entry whose group the
    person is a member of applies."""

    model_config = _STRICT

    title: str = Field("", max_length=64)
    issuer: str = Field(max_length=1000)
    client_id: str = Field(min_length=1, max_length=256)
    client_secret_file: Path | None = None
    client_secret_env: str = Field("", max_length=256)
    scopes: tuple[str, ...] = ("openid", "profile")
    groups_claim: str = Field("groups", min_length=1, max_length=256)
    name_claim: str = Field("name", min_length=1, max_length=256)
    roles: tuple[GroupRole, ...] = Field(min_length=1, max_length=1000)

    @field_validator("issuer")
    @classmethod
    def _issuer_is_private(cls, value: str) -> str:
        if not is_private(value) or "?" in value:
            raise unfit("must be an https URL; http is accepted only with the host 127.0.0.1, ::1 or localhost")
        return value

    @field_validator("scopes", mode="before")
    @classmethod
    def _scopes_are_words(cls, value: object) -> object:
        words = tuple(value.split()) if isinstance(value, str) else ()
        if "openid" not in words:
            raise unfit("must be scopes separated by spaces, and contain openid, such as openid profile groups")
        return words

    @model_validator(mode="after")
    def _secret_has_one_place(self) -> Self:
        if (self.client_secret_file is None) == (not self.client_secret_env):
            raise ValueError("set one of client_secret_file and client_secret_env")
        if self.client_secret_file is not None and not self.client_secret_file.is_absolute():
            raise ValueError("client_secret_file must be an absolute path")
        return self

    def secret(self) -> str:
        """Return the client's secret, as it is now in its file or environment variable. Raises ConfigError if there is
        none."""
        if self.client_secret_file is not None:
            return secret_in(self.client_secret_file)
        return usable_secret(os.environ.get(self.client_secret_env, ""), self.client_secret_env)

    def role_of(self, groups: Collection[str]) -> GroupRole | None:
        """Return the first entry of `roles` whose group is among these groups, or None."""
        return next((each for each in self.roles if each.group in groups), None)


def is_private(url: str) -> bool:
    """Return whether a URL is an https URL, or an http URL of this machine, without a user or a fragment."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    if not is_whole or not re.fullmatch("[!-~]+", url) or re.search(r"[@#\\\"<>]", url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _providers(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError("identity providers are only in the settings file, as tables [identity_providers.NAME]")  # noqa: TRY004
    if len(value) > MAX_PROVIDERS:
        raise ValueError(f"{len(value)} identity providers are set, but at most {MAX_PROVIDERS} are allowed")
    if wrong := [name for name in value if not _NAME.fullmatch(str(name))]:
        raise ValueError(
            f"{wrong[0]!r} is not a name for an identity provider; give 1 to 32 characters of a-z, 0-9 and -"
        )
    issuers = [each.get("issuer") for each in value.values() if isinstance(each, Mapping)]
    if len({str(each) for each in issuers}) != len(issuers):
        raise ValueError("two identity providers have the same issuer")
    return value


Providers = Annotated[Mapping[str, IdentityProvider], BeforeValidator(_providers)]

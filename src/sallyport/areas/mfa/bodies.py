"""Request and response bodies of /ad/...MFAProvider(s)."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sallyport.areas.mfa.provider import MAX_TIMEOUT_S, Strength
from sallyport.base.model import Done, Model, Success
from sallyport.base.validation import Between
from sallyport.web.bodies import Flag, InDomain, Name, Text, Whole, few_members


def _lower(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


PROVIDER: Final = "Provider: totp, duo, okta, privacyidea, webhook, radius, wallet, own, or an installed one."
TIMEOUT: Final = "Time that a user may take to answer, in seconds."


ANY_PROVIDER: Final = "One of the domain's providers. Default: the domain's default provider."
WORKED: Final = (
    "Time of the last call to the provider that succeeded, ISO 8601 UTC. Empty if there was none since the start of "
    "the service or the last change of the provider."
)
FAILS: Final = "Time of the first failed call since then, ISO 8601 UTC. Empty if no call has failed."
LAST_ERROR: Final = "Error of the last call that failed; empty if no call has failed."
IS_DEFAULT: Final = "Whether it is the domain's default provider, which is asked if no login rule names another one."

OneProvider = Annotated[Text, BeforeValidator(_lower)]


class GetMfaProvider(InDomain):
    """Request body of the operation `GetMFAProvider`."""

    provider: OneProvider = Field(default="", description=ANY_PROVIDER)


class SetMfaProvider(InDomain):
    """Request body of the operation `SetMFAProvider`. The provider's own fields, such as `url`, are further members of
    the object."""

    model_config = ConfigDict(extra="allow")

    provider: Annotated[Name, BeforeValidator(_lower)] = Field(description=PROVIDER)
    timeoutSeconds: Annotated[Whole, Between(5, MAX_TIMEOUT_S)] = Field(default=60, description=TIMEOUT)

    @model_validator(mode="after")
    def _has_few_fields(self) -> Self:
        few_members(self.own_fields())
        return self

    def own_fields(self) -> dict[str, object]:
        """Return the members of the object that belong to the provider."""
        return dict(self.model_extra or {})


class AddMfaProvider(SetMfaProvider):
    """Request body of the operation `AddMFAProvider`. The provider's own fields, such as `url`, are further members of
    the object."""


class WholeProvider(SetMfaProvider):
    """An MFA provider in a file. The provider's own fields, such as `url`, are further members of the object."""

    beside: Flag = Field(default=False, description="Whether the provider is beside the default one of its domain.")


class ListMfaProviders(InDomain):
    """Request body of the operation `ListMFAProviders`."""


class DeleteMfaProvider(InDomain):
    """Request body of the operation `DeleteMFAProvider`."""

    provider: OneProvider = Field(default="", description=ANY_PROVIDER)


class CheckMfaProvider(InDomain):
    """Request body of the operation `CheckMFAProvider`."""

    provider: OneProvider = Field(default="", description=ANY_PROVIDER)


class MfaProviderChecked(Done):
    """Response body of the operation `CheckMFAProvider`."""

    provider: str = Field(description=PROVIDER)
    works: bool = Field(description="Whether the provider answers and accepts its keys.")
    problem: str = Field(description="Error of the provider and what to do about it; empty if the provider works.")


class MfaProvider(Success):
    """Response body of the operation `GetMFAProvider`. The provider's own fields without secrets, such as `url`, are
    further members of the object."""

    model_config = ConfigDict(extra="allow")

    provider: str = Field(description=PROVIDER)
    timeoutSeconds: int = Field(description=TIMEOUT)
    workedAt: str = Field(description=WORKED)
    failsSince: str = Field(description=FAILS)
    lastError: str = Field(description=LAST_ERROR)


class ListedProvider(Model):
    """An MFA provider of a domain."""

    provider: str = Field(description=PROVIDER)
    isDefault: bool = Field(description=IS_DEFAULT)
    strongest: Strength | Literal[""] = Field(
        description="Highest strength that an answer of the provider can have. Empty if its configuration cannot be "
        "read."
    )
    timeoutSeconds: int = Field(description=TIMEOUT)
    usedBy: list[str] = Field(description="Login rules that name the provider, such as `rule 3 admins`.")
    workedAt: str = Field(description=WORKED)
    failsSince: str = Field(description=FAILS)
    lastError: str = Field(description=LAST_ERROR)


class MfaProviders(Success):
    """Response body of the operation `ListMFAProviders`."""

    providers: list[ListedProvider] = Field(description="Providers ordered by name, the default one first.")

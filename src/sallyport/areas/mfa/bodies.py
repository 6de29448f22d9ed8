"""Request and response bodies of /ad/GetMFAProvider, SetMFAProvider, CheckMFAProvider and DeleteMFAProvider."""

from typing import Annotated, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sallyport.areas.mfa.provider import LONGEST_TIMEOUT_S
from sallyport.base.model import Done, Success
from sallyport.base.validation import Between
from sallyport.web.bodies import InDomain, Name, Whole, few_members


def _lower(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


PROVIDER: Final = "Provider: totp, duo, okta, privacyidea, webhook, radius, wallet, or an installed one."
TIMEOUT: Final = "Time that a user may take to answer, in seconds."


class GetMfaProvider(InDomain):
    """Request body of the operation `GetMFAProvider`."""


class SetMfaProvider(InDomain):
    """Request body of the operation `SetMFAProvider`. The provider's own fields, such as `url`, are further members of
    the object."""

    model_config = ConfigDict(extra="allow")

    provider: Annotated[Name, BeforeValidator(_lower)] = Field(description=PROVIDER)
    timeoutSeconds: Annotated[Whole, Between(5, LONGEST_TIMEOUT_S)] = Field(default=60, description=TIMEOUT)

    @model_validator(mode="after")
    def _has_few_fields(self) -> Self:
        few_members(self.own_fields())
        return self

    def own_fields(self) -> dict[str, object]:
        """Return the members of the object that belong to the provider."""
        return dict(self.model_extra or {})


class DeleteMfaProvider(InDomain):
    """Request body of the operation `DeleteMFAProvider`."""


class CheckMfaProvider(InDomain):
    """Request body of the operation `CheckMFAProvider`."""


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
    workedAt: str = Field(
        description="Time of the last call to the provider that succeeded, ISO 8601 UTC. Empty if there was none since "
        "the start of the service or the last change of the provider."
    )
    failsSince: str = Field(
        description="Time of the first failed call since then, ISO 8601 UTC. Empty if no call has failed."
    )
    lastError: str = Field(description="Error of the last call that failed; empty if no call has failed.")

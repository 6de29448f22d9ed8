"""The bodies and answers of /ad/GetMFAProvider, SetMFAProvider and DeleteMFAProvider."""

from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import Between
from sallyport.mfa.service import LONGEST_TIMEOUT_S
from sallyport.web.scope import InDomain, Name, Whole, few_members


def _lower(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


class GetMfaProvider(InDomain):
    """Body of GetMFAProvider."""


class SetMfaProvider(InDomain):
    """Body of SetMFAProvider. The provider's own fields stand beside these."""

    model_config = ConfigDict(extra="allow")

    provider: Annotated[Name, BeforeValidator(_lower)]
    timeoutSeconds: Annotated[Whole, Between(5, LONGEST_TIMEOUT_S)] = 60

    @model_validator(mode="after")
    def _has_few_fields(self) -> Self:
        few_members(self.own_fields())
        return self

    def own_fields(self) -> dict[str, object]:
        """What was sent beside the fields above."""
        return dict(self.model_extra or {})


class DeleteMfaProvider(InDomain):
    """Body of DeleteMFAProvider."""


class MfaProvider(Model):
    """Answer of GetMFAProvider: the provider's own fields without its secrets stand beside these."""

    model_config = ConfigDict(extra="allow")

    code: int = 200
    status: str = "Success"
    provider: str
    timeoutSeconds: int

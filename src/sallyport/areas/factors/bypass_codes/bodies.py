"""Request and response bodies of /ad/...BypassCodes."""

from typing import Annotated

from pydantic import Field

from sallyport.areas.factors.bypass_codes.code import MAX_CODES, MAX_HOURS, MAX_USES, BypassCode
from sallyport.areas.users.accounts.fields import UserName
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between
from sallyport.web.bodies import InDomain, Paged, Text, TotalCount, Whole


class MakeBypassCodes(InDomain):
    """Request body of the operation `MakeBypassCodes`."""

    userName: UserName = Field(description="Name of the user.")
    codes: Annotated[Whole, Between(1, MAX_CODES)] = Field(default=1, description="Number of codes.")
    uses: Annotated[Whole, Between(1, MAX_USES)] = Field(default=1, description="How often each code may be used.")
    hours: Annotated[Whole, Between(1, MAX_HOURS)] = Field(default=24, description="Hours until the codes expire.")


class ListBypassCodes(InDomain, Paged):
    """Request body of the operation `ListBypassCodes`."""

    userName: Text = Field(default="", description="Name of a user, to list only the codes of this user.")


class RemoveBypassCodes(InDomain):
    """Request body of the operation `RemoveBypassCodes`."""

    userName: UserName = Field(description="Name of the user.")


class BypassCodesMade(Done):
    """Response body of the operation `MakeBypassCodes`."""

    userName: str = Field(description="Name of the user, as logins know it.")
    codes: list[str] = Field(description="The codes, eight digits each. No other answer contains them.")
    uses: int = Field(description="How often each code may be used.")
    expiresAt: str = Field(description="When the codes expire, ISO 8601 UTC.")
    warnings: list[str] = Field(description="A warning if no MFA provider of the domain takes bypass codes.")


@answer_of(BypassCode)
class BypassCodeEntry(Model):
    """A bypass code, without its digits."""


class BypassCodeList(Model):
    """Response body of the operation `ListBypassCodes`."""

    bypassCodes: list[BypassCodeEntry] = Field(description="Codes of the page, ordered by user and first digit.")
    totalCount: TotalCount

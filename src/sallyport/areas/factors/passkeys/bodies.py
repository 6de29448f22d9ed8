"""Request and response bodies of /ad/...Passkey(s)."""

from pydantic import Field

from sallyport.areas.factors.passkeys.passkey import Passkey
from sallyport.areas.users.accounts.fields import UserName
from sallyport.base.model import Model, answer_of
from sallyport.web.bodies import Id, InDomain, Paged, Text, TotalCount


class ListPasskeys(InDomain, Paged):
    """Request body of the operation `ListPasskeys`."""

    userName: Text = Field(default="", description="Name of a user, to list only the passkeys of this user.")


class RemovePasskey(InDomain):
    """Request body of the operation `RemovePasskey`."""

    userName: UserName = Field(description="Name of the user.")
    passkeyId: Id = Field(description="Id of the passkey, as ListPasskeys gives it.")


@answer_of(Passkey)
class PasskeyEntry(Model):
    """A passkey."""


class PasskeyList(Model):
    """Response body of the operation `ListPasskeys`."""

    host: str = Field(description="Host for which passkeys are made: that of public_url. Empty: no passkeys are made.")
    passkeys: list[PasskeyEntry] = Field(description="Passkeys of the page, ordered by user.")
    totalCount: TotalCount

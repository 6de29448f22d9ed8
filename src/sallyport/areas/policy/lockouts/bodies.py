"""Request and response bodies of /ad/ListLockouts and /ad/Unlock."""

from pydantic import Field, model_validator

from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.areas.policy.lockouts.repo import LockoutRow
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import InDomain, Paged, Search, Text, TotalCount


class ListLockouts(InDomain, Paged):
    """Request body of the operation `ListLockouts`."""

    search: Search = Field(
        default="", description="Part of the name of a user or a station. Leave it empty to list all lock-outs."
    )


class Unlock(InDomain):
    """Request body of the operation `Unlock`."""

    userName: Text = Field(
        default="",
        description="User to unlock, as ListLockouts shows the name. The stations from which the user failed to "
        "log in are unlocked too. Give either this or a station.",
    )
    station: Text = Field(
        default="",
        description="Station to unlock, a Calling-Station-Id. A MAC address may be in "
        "any notation. Give either this or a user.",
    )

    @model_validator(mode="after")
    def _names_one(self) -> "Unlock":
        if bool(self.userName) is bool(self.station):
            raise unfit("either userName or station must be given, and not both", "userName", "station")
        return self

    @property
    def named(self) -> tuple[LockoutKind, str]:
        """The kind and the name of the user or station to unlock."""
        return (LockoutKind.USER, self.userName) if self.userName else (LockoutKind.STATION, self.station)


class Unlocked(Done):
    """Response body of the operation `Unlock`."""

    stations: list[str] = Field(
        description="Calling-Station-Ids of the stations that were locked out, and are not now."
    )


@answer_of(LockoutRow)
class LockoutEntry(Model):
    """A user or a station that is locked out."""


class LockoutList(Model):
    """Response body of the operation `ListLockouts`."""

    lockouts: list[LockoutEntry] = Field(description="Lock-outs of the page, ordered by id.")
    totalCount: TotalCount

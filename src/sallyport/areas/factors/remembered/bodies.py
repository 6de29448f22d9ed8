"""Request and response bodies of /ad/...RememberedStation(s)."""

from pydantic import Field

from sallyport.areas.factors.remembered.station import RememberedStation
from sallyport.areas.users.accounts.fields import UserName
from sallyport.base.model import Model, answer_of
from sallyport.web.bodies import Id, InDomain, Paged, Text, TotalCount


class ListRememberedStations(InDomain, Paged):
    """Request body of the operation `ListRememberedStations`."""

    userName: Text = Field(default="", description="Name of a user, to list only the stations of this user.")


class RemoveRememberedStation(InDomain):
    """Request body of the operation `RemoveRememberedStation`."""

    userName: UserName = Field(description="Name of the user.")
    rememberedId: Id | None = Field(
        default=None, description="Id of the station, as ListRememberedStations gives it. Default: all of the user."
    )


@answer_of(RememberedStation)
class RememberedEntry(Model):
    """A remembered station."""


class RememberedList(Model):
    """Response body of the operation `ListRememberedStations`."""

    rememberedStations: list[RememberedEntry] = Field(description="Stations of the page, ordered by user.")
    totalCount: TotalCount

"""Request and response bodies of /ad/...BypassStation(s)."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from sallyport.areas.policy.bypass.repo import StationRow
from sallyport.base.mac import mac_key
from sallyport.base.model import Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import InDomain, Many, Paged, Text, TotalCount

MOST: Final = 1000
"""Maximum number of stations in one request."""


def _mac(value: str) -> str:
    key = mac_key(value)
    if not key:
        raise unfit("must be a MAC address")
    return key


Stations = Annotated[Many[Annotated[Text, AfterValidator(_mac)]], Field(min_length=1, max_length=MOST)]


class AddBypassStation(InDomain):
    """Request body of the operation `AddBypassStation`."""

    station: Stations = Field(description="One MAC address or several, in any notation.")
    name: Text = Field(
        default="",
        description="Name of the stations. If it is empty, stations that are already listed keep their names.",
    )


class DeleteBypassStation(InDomain):
    """Request body of the operation `DeleteBypassStation`."""

    station: Stations = Field(
        description="One MAC address or several, in any notation. If one of them is not listed, none is removed."
    )


class ListBypassStations(InDomain, Paged):
    """Request body of the operation `ListBypassStations`."""

    search: Text = Field(
        default="",
        description="Part of the address in any notation, or of the name. If it is empty, all stations are listed.",
    )


@answer_of(StationRow)
class StationEntry(Model):
    """A station on the list."""


class StationList(Model):
    """Response body of the operation `ListBypassStations`."""

    stations: list[StationEntry] = Field(description="Stations of the page, in the order in which they were added.")
    totalCount: TotalCount

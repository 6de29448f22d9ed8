"""Request and response bodies of /ad/GetAuthLog."""

from typing import Literal

from pydantic import Field

from sallyport.areas.events.event import EventRow
from sallyport.base.model import Model, answer_of
from sallyport.web.bodies import AddressOrText, Flag, Id, InDomain, Paged, Text, TotalCount


class GetAuthLog(InDomain, Paged):
    """Request body of the operation `GetAuthLog`."""

    search: AddressOrText = Field(
        default="",
        description=(
            "Part of a user name, device name, station or address, in upper or lower case. Leave it empty to list all "
            "logins."
        ),
    )
    deviceId: Id = Field(default=0, description="Id of a device, as ListDevices gives it. 0 selects all devices.")
    eventId: Id = Field(default=0, description="Id of the only event to return. 0 selects all events.")
    traceId: Text = Field(
        default="",
        description="Trace id of the logins, as an MFA provider gets it in `traceparent`. Leave it empty for all.",
    )
    user: Text = Field(default="", description="Whole user name, in upper or lower case. Leave it empty for all users.")
    station: Text = Field(
        default="", description="Whole Calling-Station-Id, in upper or lower case. Leave it empty for all."
    )
    device: Text = Field(
        default="", description="Whole name of a device, in upper or lower case. Leave it empty for all."
    )
    appliedDecision: Literal["accept", "reject", "challenge", ""] = Field(
        default="", description="Decision that was sent. Leave it empty for all."
    )
    reason: Text = Field(default="", description="Reason of the decision, as in an event. Leave it empty for all.")
    since: Text = Field(
        default="", validation_alias="from", description="Start time, ISO 8601. Leave it empty for no limit."
    )
    until: Text = Field(
        default="", validation_alias="to", description="End time (exclusive), ISO 8601. Leave it empty for no limit."
    )
    cursor: Text = Field(
        default="", description="Cursor of the previous answer, to get the next page. It replaces pageId."
    )
    withTotal: Flag = Field(
        default=True,
        description="Whether to count all matches. If false, totalCount is the number of events on the page.",
    )


@answer_of(EventRow)
class EventEntry(Model):
    """A login and its decision."""


class EventList(Model):
    """Response body of the operation `GetAuthLog`."""

    events: list[EventEntry] = Field(description="Logins of the page, newest first.")
    totalCount: TotalCount
    cursor: str = Field(description="Cursor of the next page; empty on the last page.")

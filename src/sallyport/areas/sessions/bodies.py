"""Request and response bodies of ListSessions."""

from pydantic import Field

from sallyport.areas.sessions.session import SessionRow
from sallyport.base.model import Model, answer_of
from sallyport.web.bodies import AddressOrText, Flag, Id, InDomain, IsMinimum, Paged, Text, TotalCount


class ListSessions(InDomain, Paged):
    """Request body of the operation `ListSessions`."""

    search: AddressOrText = Field(
        default="",
        description="Part of a user, a station, an address or an Acct-Session-Id. Leave it empty to list all sessions.",
    )
    live: Flag | None = Field(
        default=None,
        description="True lists only live sessions, false only past sessions. Without it, both are listed.",
    )
    deviceId: Id = Field(default=0, description="Id of a device, as ListDevices gives it. 0 selects all devices.")
    userName: Text = Field(
        default="", description="User-Name, in upper or lower case. Leave it empty to list the sessions of all users."
    )
    sessionId: Id = Field(default=0, description="Id of the only session to return. 0 selects all sessions.")
    since: Text = Field(
        default="",
        validation_alias="from",
        description="Earliest begin of a session (inclusive), ISO 8601. Leave it empty for no limit.",
    )
    until: Text = Field(
        default="",
        validation_alias="to",
        description="Latest begin of a session (exclusive), ISO 8601. Leave it empty for no limit.",
    )


@answer_of(SessionRow)
class SessionEntry(Model):
    """A session in ListSessions."""


class SessionList(Model):
    """Response body of the operation `ListSessions`."""

    sessions: list[SessionEntry] = Field(description="Sessions of the page, newest first.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False

"""Request and response bodies of ListSessions."""

from pydantic import Field

from sallyport.areas.sessions.session import SessionState
from sallyport.base.model import Model
from sallyport.web.paging import IsMinimum, Paged, TotalCount
from sallyport.web.scope import AddressOrText, Flag, Id, InDomain, Text


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


class SessionEntry(Model):
    """A session in ListSessions."""

    sessionId: int = Field(description="Id of the session; newer sessions have higher ids.")
    acctSessionId: str = Field(description="Acct-Session-Id; octets that are not UTF-8 are read as Latin-1.")
    userName: str = Field(description="User-Name; empty if no record has it.")
    ip_address: str = Field(description="Source address of the device's requests.")
    client_ip: str = Field(description="NAS-IP-Address or NAS-IPv6-Address of the device.")
    device_id: int = Field(description="Id of the device.")
    device_name: str = Field(description="Name of the device.")
    station: str = Field(description="Calling-Station-Id; empty if no record has it.")
    calledStation: str = Field(description="Called-Station-Id; empty if no record has it.")
    framedIp: str = Field(description="Framed-IP-Address; empty if no record has it.")
    framedIpv6: str = Field(description="Framed-IPv6-Address; empty if no record has it.")
    framedIpv6Prefix: str = Field(description="Framed-IPv6-Prefix; empty if no record has it.")
    delegatedIpv6Prefix: str = Field(description="Delegated-IPv6-Prefix; empty if no record has it.")
    nasPort: int | None = Field(description="NAS-Port; null if no record has it.")
    nasPortId: str = Field(description="NAS-Port-Id; empty if no record has it.")
    nasPortType: str = Field(description="Name or number of NAS-Port-Type; empty if no record has it.")
    state: SessionState = Field(
        description=(
            "live, stopped if the device has reported the end, or lost if the device restarted or sent no more records."
        )
    )
    startedAt: str = Field(description="Begin, ISO 8601 UTC.")
    updatedAt: str = Field(description="Time of the last record, ISO 8601 UTC.")
    stoppedAt: str = Field(description="End, ISO 8601 UTC; empty while the session is live.")
    sessionTime: int = Field(description="Duration in seconds, as the device counts it.")
    inputOctets: int = Field(description="Octets received from the user.")
    outputOctets: int = Field(description="Octets sent to the user.")
    inputPackets: int = Field(description="Packets received from the user.")
    outputPackets: int = Field(description="Packets sent to the user.")
    terminateCause: str = Field(description="Name or number of Acct-Terminate-Cause; empty if no record has it.")


class SessionList(Model):
    """Response body of the operation `ListSessions`."""

    sessions: list[SessionEntry] = Field(description="Sessions of the page, newest first.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False

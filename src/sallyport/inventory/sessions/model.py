"""Sessions in the interface."""

from pydantic import Field

from sallyport.base.model import Model
from sallyport.web.paging import Paged
from sallyport.web.scope import AddressOrText, Flag, Id, InDomain, Text


class ListSessions(InDomain, Paged):
    """Body of ListSessions. live: absent for live and past ones. deviceId: 0 for every device. from and to: when a
    session began, ISO 8601."""

    search: AddressOrText = ""
    live: Flag | None = None
    deviceId: Id = 0
    userName: Text = ""
    since: Text = Field(default="", validation_alias="from")
    until: Text = Field(default="", validation_alias="to")


class SessionEntry(Model):
    """One session. Times: ISO 8601 UTC, `stoppedAt` empty while it is live; sessionTime in seconds.

    acctSessionId: as text, octets that are none as Latin-1. state: live, stopped, or lost where its device restarted
    or fell silent. An address, a port or a cause that no record has told is empty or null.
    """

    sessionId: int
    acctSessionId: str
    userName: str
    ip_address: str
    client_ip: str
    device_id: int
    device_name: str
    station: str
    calledStation: str
    framedIp: str
    framedIpv6: str
    framedIpv6Prefix: str
    delegatedIpv6Prefix: str
    nasPort: int | None
    nasPortId: str
    nasPortType: str
    state: str
    startedAt: str
    updatedAt: str
    stoppedAt: str
    sessionTime: int
    inputOctets: int
    outputOctets: int
    inputPackets: int
    outputPackets: int
    terminateCause: str


class SessionList(Model):
    """Answer of ListSessions, newest first."""

    sessions: list[SessionEntry]
    totalCount: int

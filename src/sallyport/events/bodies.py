"""Request and response bodies of /ad/GetAuthLog."""

from typing import Literal

from pydantic import Field

from sallyport.base.model import Model
from sallyport.web.paging import Paged, TotalCount
from sallyport.web.scope import AddressOrText, Flag, Id, InDomain, Text

Verdict = Literal["accept", "reject", "challenge"]


class GetAuthLog(InDomain, Paged):
    """Body of GetAuthLog."""

    search: AddressOrText = Field(
        default="",
        description="Text that user, device name, station or an address contains, in upper or lower case. Empty: all.",
    )
    deviceId: Id = Field(default=0, description="Id of a device, as ListDevices gives it; 0: all devices.")
    eventId: Id = Field(default=0, description="Id of the only event to return; 0: all events.")
    user: Text = Field(default="", description="Whole user name, in upper or lower case. Empty: all users.")
    station: Text = Field(default="", description="Whole Calling-Station-Id, in upper or lower case. Empty: all.")
    device: Text = Field(default="", description="Whole name of a device, in upper or lower case. Empty: all.")
    appliedDecision: Literal["accept", "reject", "challenge", ""] = Field(
        default="", description="Decision that was sent. Empty: all."
    )
    reason: Text = Field(default="", description="Reason of the decision, as an event has it. Empty: all.")
    since: Text = Field(default="", validation_alias="from", description="Start time, ISO 8601. Empty: no limit.")
    until: Text = Field(default="", validation_alias="to", description="End time (exclusive), ISO 8601. Empty: none.")
    cursor: Text = Field(default="", description="Cursor of the answer before, for the next page, instead of pageId.")
    withTotal: Flag = Field(
        default=True, description="Whether to count all matches. Without it, totalCount has those of the page."
    )


class EventEntry(Model):
    """A login."""

    eventId: int = Field(description="Id of the event.")
    time: str = Field(description="Time when the request arrived, ISO 8601 in UTC.")
    user: str = Field(description="User name without a realm.")
    domain: str = Field(description="Name of the domain that the login belongs to.")
    ip_address: str = Field(description="Source address of the packet: the RADIUS server that forwards, or the NAS.")
    client_ip: str = Field(description="Address of the NAS, as the request gives it, or else the source address.")
    device_name: str = Field(description="Name of the network device: its NAS-Identifier, or else the product.")
    device_id: int = Field(description="Id of the network device; 0 if its sender was not proved.")
    station: str = Field(description="Calling-Station-Id; empty if the request has none.")
    method: str = Field(description="Authentication method, such as pap, chap, mschapv2, eap-tls or mab.")
    factor: str = Field(description="Checker of the first factor: local, ldap, radius or none.")
    decision: Verdict = Field(description="Decision by first factor, rules and second factor.")
    appliedDecision: Verdict = Field(description="Decision that was sent; differs from decision in monitor mode.")
    wouldHaveBeen: Verdict | Literal[""] = Field(description="Decision of enforce mode; empty in enforce mode.")
    reason: str = Field(description="Reason of the decision, in words; empty for a plain accept.")
    latencyMs: float = Field(description="Time from receipt to decision, in milliseconds.")
    node: str = Field(description="Name of the node that decided; empty if that node was removed.")


class EventList(Model):
    """Answer of GetAuthLog."""

    events: list[EventEntry] = Field(description="Logins of the page, newest first.")
    totalCount: TotalCount
    cursor: str = Field(description="Cursor of the next page; empty on the last page.")

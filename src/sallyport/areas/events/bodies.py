"""Request and response bodies of /ad/GetAuthLog."""

from typing import Literal

from pydantic import Field

from sallyport.base.model import Model
from sallyport.web.paging import Paged, TotalCount
from sallyport.web.scope import AddressOrText, Flag, Id, InDomain, Text

Verdict = Literal["accept", "reject", "challenge"]


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


class EventEntry(Model):
    """A login and its decision."""

    eventId: int = Field(description="Id of the event.")
    time: str = Field(description="Time when the request arrived, ISO 8601 in UTC.")
    user: str = Field(description="User name without a realm.")
    domain: str = Field(description="Name of the domain that the login belongs to.")
    ip_address: str = Field(
        description="Source address of the packet: the NAS, or a RADIUS server that forwarded the request."
    )
    client_ip: str = Field(
        description="Address of the NAS in the request, or the source address if the request contains none."
    )
    device_name: str = Field(
        description="Name of the network device: its NAS-Identifier, or its product if it sends no NAS-Identifier."
    )
    device_id: int = Field(
        description="Id of the network device, or 0 if the request did not prove that it knows the shared secret."
    )
    station: str = Field(description="Calling-Station-Id; empty if the request has none.")
    method: str = Field(description="Authentication method, such as pap, chap, mschapv2, eap-tls or mab.")
    factor: str = Field(description="System that checked the password: local, ldap, radius or none.")
    decision: Verdict = Field(
        description="Decision that the first factor, the rules and the second factor have led to."
    )
    appliedDecision: Verdict = Field(
        description="Decision that was sent. In monitor mode it may differ from `decision`."
    )
    wouldHaveBeen: Verdict | Literal[""] = Field(
        description="Decision that enforce mode would have made; empty in enforce mode."
    )
    reason: str = Field(description="Reason of the decision, in words; empty for a plain accept.")
    ruleId: int | None = Field(
        description="Id of the login rule that decided, or 0 if no rule did. null if the rule was not recorded."
    )
    rule: str = Field(description="Name of this rule at the time of the login; empty if no rule decided.")
    firstFactorMs: float | None = Field(
        description="Time that another server took for the first factor, in milliseconds. null if none was asked."
    )
    secondFactorMs: float | None = Field(
        description="Time that the provider and the user took for the second factor, in milliseconds. null if the "
        "second factor was not asked for."
    )
    attributes: list[str] = Field(
        description="Attributes of the answer, such as `Filter-Id = staff`, without those of the authentication "
        "method. A secret is shown as `***`. Empty if there are none."
    )
    detail: str = Field(
        description="What the MFA provider says about the outcome, such as why a code was wrong. Empty if nothing."
    )
    latencyMs: float = Field(description="Time from receipt of the request to the decision, in milliseconds.")
    node: str = Field(description="Name of the node that made the decision. Empty if the node was removed.")


class EventList(Model):
    """Response body of the operation `GetAuthLog`."""

    events: list[EventEntry] = Field(description="Logins of the page, newest first.")
    totalCount: TotalCount
    cursor: str = Field(description="Cursor of the next page; empty on the last page.")

"""The log of logins as the interface has it."""

from pydantic import Field

from sallyport.base.model import Model
from sallyport.web.paging import Paged
from sallyport.web.scope import AddressOrText, InDomain, Text


class GetAuthLog(InDomain, Paged):
    """Body of GetAuthLog. from and to: ISO 8601; cursor: of the page before."""

    search: AddressOrText = ""
    since: Text = Field(default="", validation_alias="from")
    until: Text = Field(default="", validation_alias="to")
    cursor: Text = ""


class EventEntry(Model):
    """One event. time: ISO 8601 UTC; latencyMs: from receipt to decision."""

    eventId: int
    time: str
    user: str
    domain: str
    ip_address: str
    client_ip: str
    device_name: str
    station: str
    method: str
    factor: str
    decision: str
    appliedDecision: str
    wouldHaveBeen: str
    reason: str
    latencyMs: float


class EventList(Model):
    """Answer of GetAuthLog, newest first. cursor: names the next page; empty on the last."""

    events: list[EventEntry]
    totalCount: int
    cursor: str

"""Values of the log of logins: an event, and queries for events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from sallyport.base.answer import Wire
from sallyport.base.clock import iso

FOREVER: Final = 2**63 - 1
Verdict = Literal["accept", "reject", "challenge"]


def milliseconds(microseconds: int) -> float:
    """Return a time in milliseconds."""
    return microseconds / 1000


def milliseconds_waited(microseconds: int) -> float | None:
    """Return a time in milliseconds. Return None if it is 0."""
    return microseconds / 1000 or None


@dataclass(slots=True)  # not frozen, because a page has up to 1000, and freezing takes most of the time to make one
class EventRow:
    """An event of a login. Times are in microseconds.

    node_id: the node that decided, or 0 on an embedded database. rule_id is None in an event of an earlier version,
    which did not record the rule. first_us, second_us: 0 if the login did not wait. attributes: one in each line; None
    if there are none to show.
    """

    id: Annotated[int, Wire("Id of the event.", "eventId", look="none")]
    at: Annotated[int, Wire("Time when the request arrived, ISO 8601 in UTC.", "time", iso)]
    user_name: Annotated[str, Wire("User name without a realm.", "user")]
    domain: ClassVar[Annotated[str, Wire("Name of the domain that the login belongs to.")]]
    ip_address: Annotated[
        str,
        Wire(
            "Source address of the packet: the NAS, or a RADIUS server that forwarded the request.",
            title="Source",
            look="code",
        ),
    ]
    client_ip: Annotated[
        str,
        Wire(
            "Address of the NAS in the request, or the source address if the request contains none.",
            title="Device address",
            look="code",
        ),
    ]
    device_id: Annotated[
        int,
        Wire(
            "Id of the network device, or 0 if the request did not prove that it knows the shared secret.",
            after="device_name",
        ),
    ]
    device_name: Annotated[
        str,
        Wire(
            "Name of the network device: its NAS-Identifier, or its product if it sends no NAS-Identifier.",
            title="Device",
        ),
    ]
    station: Annotated[str, Wire("Calling-Station-Id; empty if the request has none.", look="mac")]
    method: Annotated[str, Wire("Authentication method, such as pap, chap, mschapv2, eap-tls or mab.")]
    factor: Annotated[str, Wire("System that checked the password: local, ldap, radius or none.", title="First factor")]
    decision: Annotated[
        str,
        Wire(
            "Decision that the first factor, the rules and the second factor have led to.", kind=Verdict, look="outcome"
        ),
    ]
    applied_decision: Annotated[
        str,
        Wire(
            "Decision that was sent. In monitor mode it may differ from `decision`.",
            "appliedDecision",
            kind=Verdict,
            title="Answer",
            look="outcome",
        ),
    ]
    would_have_been: Annotated[
        str,
        Wire(
            "Decision that enforce mode would have made; empty in enforce mode.",
            "wouldHaveBeen",
            kind=Verdict | Literal[""],
            title="In enforce mode",
            look="verdict",
        ),
    ]
    reason: Annotated[str, Wire("Reason of the decision, in words; empty for a plain accept.")]
    latency_us: Annotated[
        int,
        Wire(
            "Time from receipt of the request to the decision, in milliseconds.",
            "latencyMs",
            milliseconds,
            after="detail",
            title="Milliseconds",
        ),
    ]
    node_id: int
    rule_id: Annotated[
        int | None,
        Wire("Id of the login rule that decided, or 0 if no rule did. null if the rule was not recorded.", "ruleId"),
    ]
    rule_name: Annotated[str, Wire("Name of this rule at the time of the login; empty if no rule decided.", "rule")]
    first_us: Annotated[
        int,
        Wire(
            "Time that another server took for the first factor, in milliseconds. null if none was asked.",
            "firstFactorMs",
            milliseconds_waited,
            title="First factor, ms",
        ),
    ]
    second_us: Annotated[
        int,
        Wire(
            "Time that the provider and the user took for the second factor, in milliseconds. null if the "
            "second factor was not asked for.",
            "secondFactorMs",
            milliseconds_waited,
            title="Second factor, ms",
        ),
    ]
    role: Annotated[
        str | None,
        Wire("Role that the login got from this rule. Empty if none.", empty=True, after="node"),
    ]
    role_source: Annotated[
        str | None,
        Wire(
            "Why the NAS got its set of the role's attributes: its `tag`, its `product`, or `default`, because the "
            "role has no set for it. `none`: the role has no default set either, and nothing of it was sent. Empty "
            "without a role.",
            "roleSource",
            empty=True,
            after="role",
            title="Set of the role",
        ),
    ]
    attributes: str | None
    detail: Annotated[
        str | None,
        Wire(
            "What the MFA provider says about the outcome, such as why a code was wrong, or with the provider `own` "
            "which factor the user has proved; why a client certificate was refused. Empty if nothing.",
            empty=True,
            after="attributes",
        ),
    ]

    ssid: Annotated[
        str, Wire("SSID of the wireless network; empty if the request names none.", after="roleSource", title="SSID")
    ]
    port: Annotated[str, Wire("Port of the NAS (NAS-Port-Id); empty if the request has none.", after="ssid")]
    authority: Annotated[
        str | None,
        Wire(
            "Authority of the domain that has signed the client certificate. Empty without a certificate, or if the "
            "domain trusts the authorities of the installation.",
            empty=True,
            after="port",
        ),
    ]
    named_by: Annotated[
        str | None,
        Wire(
            "Field of this certificate that has named the user: `sid` or `object-id`, which are strong, or `upn`, "
            "`mail`, `dns`, `cn` or `serial`, which are weak. Empty without an authority.",
            "namedBy",
            empty=True,
            after="authority",
        ),
    ]
    revocation: Annotated[
        str | None,
        Wire(
            "Revocation lists and OCSP responders that were asked about this certificate, and their answers. Empty "
            "without an authority.",
            empty=True,
            after="namedBy",
            look="none",
        ),
    ]
    trace_id: Annotated[
        str | None,
        Wire(
            "Trace id of the login (W3C Trace Context), which log lines and the requests to the MFA provider have too. "
            "Empty if the login was decided at once, or by its first factor alone.",
            "traceId",
            empty=True,
            after="revocation",
            look="none",
        ),
    ]

    @property
    @Wire(
        "Attributes of the answer, such as `Filter-Id = staff`, without those of the authentication method. A secret "
        "is shown as `***`. Empty if there are none.",
        "attributes",
        after="secondFactorMs",
    )
    def shown_attributes(self) -> list[str]:
        """The attributes of the answer."""
        return (self.attributes or "").splitlines()

    @Wire("Name of the node that made the decision. Empty if the node was removed.", after="latencyMs")
    def node(self, nodes: Mapping[int, str]) -> str:
        """Return the name of the node. nodes: the names of nodes by id."""
        return nodes.get(self.node_id, "")


@dataclass(slots=True)
class DomainEvent(EventRow):
    """An event of any domain."""

    domain_id: int


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A query for one page of a domain's events.

    since, until: the range of times; `until` is exclusive. search: a part of a name or an address. The name is that of
    a user, a device or a station. device_id: the id of a device, or 0 for all devices. event_id: the id of the only
    event, or 0 for all events. trace_id: the trace id of the events, or empty for all. user, station, device_name:
    whole names, ignoring case; empty for all. A MAC address may be in any notation. applied_decision, reason: the
    values that the events must have; empty for all. before: (at, id) of the last event on the previous page.
    """

    domain_id: int
    search: str = ""
    device_id: int = 0
    event_id: int = 0
    trace_id: str = ""
    user: str = ""
    station: str = ""
    device_name: str = ""
    applied_decision: str = ""
    reason: str = ""
    since: int = 0
    until: int = FOREVER
    before: tuple[int, int] | None = None
    offset: int = 0
    limit: int = 10


@dataclass(frozen=True, slots=True)
class ExportQuery:
    """A query for one page of a domain's events in an export.

    last_id: the id of the newest event at the start of the export. since, until: the range of times; `until` is
    exclusive. after: (at, id) of the last event on the previous page.
    """

    domain_id: int
    last_id: int
    since: int = 0
    until: int = FOREVER
    after: tuple[int, int] | None = None
    limit: int = 200

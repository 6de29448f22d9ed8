"""Rows of the inventory: devices, the stations behind them, their history, and queries for them.

The posture of a device tells an admin whether signatures can be required, and whether a second factor can be enforced.
It has the counts of signed logins, unsigned logins, unsigned logins with Proxy-State, challenges, and answers to
challenges. It also has what the service has learned while logins waited (`Learned`): the device's retransmission
interval, the time after which it gives up, and whether it shows challenges. Each of these has an age. It is forgotten
when a login contradicts it, when it was not confirmed for LEARNED_US, and when an admin resets the device.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from sallyport.areas.devices.usage import Usage
from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso
from sallyport.base.tags import Tags, as_object, effective_tags, of_store

if TYPE_CHECKING:
    from sallyport.areas.devices.device import Device

UNKNOWN: Final = "Unknown"
MAX_SELECTED: Final = 200
"""Maximum number of devices in one delete request. Logins wait for the transaction of the request, which takes up to
0.1 ms for each device."""
QUIET_US: Final = 7 * 86_400 * SECOND
"""If a device has sent no unsigned login for this time, it is considered to sign all logins."""
UNANSWERED: Final = 3
"""A device that has answered none of this many challenges is considered unable to show challenges."""
LAPSED: Final = 10
"""The same number for a device that has answered challenges before. It is higher, because users ignore challenges."""
LEARNED_US: Final = 30 * 86_400 * SECOND
"""Time after which a learned value that was not confirmed is forgotten."""
SILENT_US: Final = 86_400 * SECOND
"""Time without a request after which a device is silent."""
ABOUT: Final = 0.8
"""A timeout of at least this share of the learned timeout confirms the learned timeout."""
_VENDOR_ATTRIBUTE: Final = re.compile(r"Vendor-Specific (\d+)/(\d+)")
AttributeName = Callable[[int, int], str]
"""A function that returns an attribute's name: (vendor id, attribute type) -> name."""
ClientTags = Callable[[int], Tags]
"""A function that returns the tags of a RADIUS client by its id."""


def shown_tags(stored: str) -> dict[str, str]:
    """Return the tags of a text of the store."""
    return as_object(of_store(stored))


def seconds(milliseconds: int) -> float:
    """Return a time in seconds."""
    return milliseconds / 1000


DeviceId = Annotated[int, Wire("Id of the device.", "device_id", title="Device id")]
DeviceName = Annotated[str, Wire("Name of the device, as ListDevices gives it.", title="Device")]
DeviceType = Annotated[str, Wire("Product of the device; Unknown if no request shows it.", title="Product")]
IpAddress = Annotated[str, Wire("Source address of the device's requests.", title="Source address", look="code")]
ClientIp = Annotated[
    str, Wire("NAS-IP-Address or NAS-IPv6-Address; if absent, the source address.", title="Device address", look="code")
]
NasIdentifier = Annotated[str, Wire("NAS-Identifier; empty if absent.", title="NAS-Identifier")]


@dataclass(slots=True, kw_only=True)
class Learned:
    """What the service has learned from the logins of a device. Times are in microseconds, or 0 if there was none.

    retransmit_ms, give_up_ms: the retransmission interval, and the time after which the device gives up. measured_at:
    when these values last changed. gave_up_at: when the device last gave up after about `give_up_ms`. unanswered: the
    number of challenges since the last answer to a challenge. answered_at, challenged_at: the times of the last answer
    and of the last challenge or answer.
    """

    retransmit_ms: Annotated[
        int | None,
        Wire(
            "Measured interval of retransmissions in seconds. Null if it was not measured.",
            "retransmit_seconds",
            seconds,
            after="safe_to_require",
            title="Retransmits after (s)",
        ),
    ] = None
    give_up_ms: int | None = None
    measured_at: Annotated[
        int,
        Wire(
            "When retransmit_seconds or give_up_seconds last changed, ISO 8601 UTC; empty if never.",
            "timeouts_learned",
            iso,
            empty=True,
            after="station_count",
            detail=True,
        ),
    ] = 0
    gave_up_at: int = 0
    unanswered: Annotated[
        int,
        Wire(
            "Challenges since the last answer to one.", "challenges_unanswered", after="challenge_answers", detail=True
        ),
    ] = 0
    answered_at: int = 0
    challenged_at: Annotated[
        int,
        Wire(
            "Time of the last challenge, answer to one, or reset, ISO 8601 UTC; empty if there was none.",
            "last_challenge",
            iso,
            empty=True,
            after="challenges_unanswered",
            detail=True,
        ),
    ] = 0

    @Wire(
        "Measured time that the device waits for an answer, in seconds. Null if it was not measured.",
        after="retransmit_seconds",
        title="Gives up after (s)",
    )
    def give_up_seconds(self, now: int) -> float | None:
        """Return the timeout of the device in seconds, as `timeout_ms` does."""
        timeout_ms = self.timeout_ms(now)
        return None if timeout_ms is None else timeout_ms / 1000

    def timeout_ms(self, now: int) -> int | None:
        """Return the time after which the device gives up, in milliseconds. Return None if it is unknown, or if the
        device has not given up for LEARNED_US. now: the time in microseconds."""
        return self.give_up_ms if now - self.gave_up_at <= LEARNED_US else None

    @Wire(
        "Whether the device shows challenges to users: yes, no or unknown.",
        after="give_up_seconds",
        title="Shows challenges",
    )
    def challenge_support(self, now: int) -> str:
        """Return whether the device shows challenges to its users: yes, no or unknown. now: the time in
        microseconds."""
        if now - self.challenged_at > LEARNED_US:
            return "unknown"
        if self.answered_at and now - self.answered_at <= LEARNED_US:
            return "yes" if self.unanswered < LAPSED else "no"
        return "no" if self.unanswered >= UNANSWERED else "unknown"

    def take_newer(self, other: "Learned") -> None:
        """Take the values of `other` that are at least as new as the own ones."""
        if other.measured_at >= self.measured_at:
            self.retransmit_ms, self.give_up_ms = other.retransmit_ms, other.give_up_ms
            self.measured_at, self.gave_up_at = other.measured_at, other.gave_up_at
        if other.challenged_at >= self.challenged_at:
            self.unanswered, self.answered_at = other.unanswered, other.answered_at
            self.challenged_at = other.challenged_at

    def is_newer(self, other: "Learned") -> bool:
        """Return whether a value is newer than that of `other`."""
        return self.measured_at > other.measured_at or self.challenged_at > other.challenged_at


@dataclass(slots=True)
class DeviceRow(Learned):
    """A device in the store, with its posture. Times are in microseconds, fields named `..._ms` in milliseconds."""

    ip_address: IpAddress
    client_ip: ClientIp
    device_type: DeviceType
    nas_port_type: Annotated[
        str, Wire("Medium of the device's logins (NAS-Port-Type), such as Ethernet or Virtual.", title="Medium")
    ]
    id: Annotated[int, Wire("Id of the device.", "device_id", title="Id")]
    domain_id: int
    device_name: Annotated[
        str, Wire("NAS-Identifier of the device, or its product if it sends no NAS-Identifier.", title="Device")
    ]
    nas_identifier: NasIdentifier
    device_type_certainty: Annotated[
        str, Wire("Confidence in device_type: certain, probable, or empty if unknown.", title="Certainty")
    ]
    nas_device_type: Annotated[
        str,
        Wire(
            "Product of the NAS that sends its requests through the device, or of the device itself.",
            title="Product behind a proxy",
        ),
    ]
    evidence: str
    first_seen: Annotated[int, Wire("First request, ISO 8601 UTC.", convert=iso, title="First request")]
    last_seen: Annotated[int, Wire("Last request, ISO 8601 UTC.", convert=iso, title="Last request", look="age")]
    request_count: Annotated[int, Wire("Requests since the device was first seen.", title="Requests")]
    registrations: Annotated[int, Wire("Number of registrations; the device registers again after each deletion.")]
    signed: int
    unsigned: int
    unsigned_proxied: Annotated[
        int,
        Wire(
            "Number of unsigned logins with Proxy-State.",
            "unsigned_proxy_state",
            after="signed_share",
            title="Unsigned with Proxy-State",
        ),
    ]
    last_unsigned: Annotated[
        int | None,
        Wire(
            "Time of the last unsigned login, ISO 8601 UTC; empty if there was none.",
            convert=iso,
            empty=True,
            after="unsigned_proxy_state",
            title="Last unsigned login",
            look="age",
        ),
    ]
    challenges: Annotated[int, Wire("Challenges that the device got.", after="timeouts_learned", detail=True)]
    station_count: ClassVar[Annotated[int, Wire("Stations behind the device.", after="evidence", detail=True)]]
    uses: ClassVar[
        Annotated[
            list[dict[str, str | int]],
            Wire("Logins by SSID, method and transport: number, first and last.", after="own_tags", detail=True),
        ]
    ]
    ports: ClassVar[
        Annotated[
            list[dict[str, str | int]],
            Wire(
                "Ports (NAS-Port-Id) with the number of their stations, the last 100. At most 10,000 stations count.",
                after="uses",
                detail=True,
            ),
        ]
    ]
    challenge_answers: Annotated[int, Wire("Challenges that the device answered.", after="challenges", detail=True)]
    client_id: int
    own_tags: Annotated[
        str,
        Wire(
            "Tags of the device itself. It takes over those of its RADIUS client with other keys.",
            convert=shown_tags,
            after="evidence",
            detail=True,
            title="Own tags",
        ),
    ]
    note: Annotated[str, Wire("Note about the device.", after="tags", look="text")]
    model: Annotated[
        str, Wire("Model of the NAS, if its vendor sends it (Huawei, H3C and others).", after="silent_since")
    ]
    firmware: Annotated[
        str, Wire("Firmware of the NAS, if its vendor sends it (Huawei, Microsoft and others).", after="model")
    ]

    @Wire("Tags of the device, and those that it takes over from its RADIUS client.", after="challenge_support")
    def tags(self, client_tags: ClientTags) -> dict[str, str]:
        """Return the effective tags. client_tags: a function that returns the tags of a RADIUS client by its id."""
        inherited = client_tags(self.client_id)
        return as_object(effective_tags(of_store(self.own_tags), inherited) if self.own_tags else inherited)

    @Wire("SSIDs of the logins, the last one first.", after="note", title="SSIDs")
    def ssids(self, usage: Usage) -> list[str]:
        """Return the SSIDs of the device."""
        return [*dict.fromkeys(each.ssid for each in usage.get(self.id, ()) if each.ssid)]

    @Wire("Methods of the logins, such as pap or eap-tls, the last one first.", after="ssids")
    def methods(self, usage: Usage) -> list[str]:
        """Return the methods in use."""
        return [*dict.fromkeys(each.method for each in usage.get(self.id, ()) if each.method)]

    @Wire("Transports of the logins: udp, radsec.", after="methods")
    def transports(self, usage: Usage) -> list[str]:
        """Return the transports in use."""
        return [*dict.fromkeys(each.transport for each in usage.get(self.id, ()))]

    @Wire(
        "Last request, if it was over a day ago, ISO 8601 UTC; otherwise empty.",
        after="transports",
        title="Silent since",
        look="age",
    )
    def silent_since(self, now: int) -> str:
        """Return since when the device has sent no request, if this is over a day. now: the time in microseconds."""
        return iso(self.last_seen) if now - self.last_seen > SILENT_US else ""

    @Wire(
        "Evidence for the product: `nas` and `forwarder` from requests, `registered` from its client.",
        "evidence",
        detail=True,
    )
    def named_evidence(self, attribute_name: AttributeName) -> dict[str, object]:
        """Return the evidence for the product. After each vendor-specific attribute, the attribute's name is
        inserted."""
        named = _VENDOR_ATTRIBUTE.sub(lambda at: f"{at[0]} ({attribute_name(int(at[1]), int(at[2]))})", self.evidence)
        found: dict[str, object] = json.loads(named)
        return found

    def add(self, device: "Device") -> None:
        """Add the counts and the product of the device in memory, because they are not in the store yet."""
        self.device_name, self.device_type = device.device_name, device.device_type
        self.device_type_certainty, self.nas_device_type = device.certainty, device.nas_device_type
        self.evidence, self.nas_port_type = device.evidence, device.nas_port_type
        self.model, self.firmware = device.model, device.firmware
        self.client_id = device.client_id
        self.last_seen = max(self.last_seen, device.last_seen)
        self.request_count += device.requests
        posture = device.posture
        self.signed += posture.signed
        self.unsigned += posture.unsigned
        self.unsigned_proxied += posture.unsigned_proxied
        self.challenges += posture.challenges
        self.challenge_answers += posture.challenge_answers
        self.last_unsigned = self.last_unsigned if posture.last_unsigned is None else posture.last_unsigned
        self.take_newer(posture)

    @property
    @Wire(
        "Share of logins with Message-Authenticator, from 0 to 1. Null if there was no login.",
        after="registrations",
        title="Signed logins",
        look="share",
    )
    def signed_share(self) -> float | None:
        """The share of logins with Message-Authenticator, from 0 to 1. None if there was no login."""
        seen = self.signed + self.unsigned
        return round(self.signed / seen, 4) if seen else None

    @Wire(
        "Whether Message-Authenticator can be required without dropping logins of the device.",
        after="last_unsigned",
        title="Signs every login",
    )
    def safe_to_require(self, now: int) -> bool:
        """Return whether Message-Authenticator can be required without dropping logins of the device.

        now: the time in microseconds.
        """
        return self.signed > 0 and (self.last_unsigned is None or now - self.last_unsigned > QUIET_US)


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station in the store, with its device. Times are in microseconds."""

    station: Annotated[str, Wire("Calling-Station-Id.", look="mac")]
    device_id: DeviceId
    device_name: DeviceName
    device_type: DeviceType
    user_name: Annotated[str, Wire("User of the station's last login.", "user", title="Last user")]
    first_seen: Annotated[int, Wire("First request, ISO 8601 UTC.", convert=iso, title="First login")]
    last_seen: Annotated[int, Wire("Last request, ISO 8601 UTC.", convert=iso, title="Last login", look="age")]
    request_count: Annotated[int, Wire("Requests of the station since its first login.", title="Requests")]
    ssid: Annotated[str, Wire("SSID of the station's last login; empty if it named none.", title="SSID")]
    port: Annotated[str, Wire("NAS-Port-Id of the station's last login; empty if it named none.", title="Port")]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One entry of a device's history."""

    device_id: DeviceId
    ip_address: IpAddress
    client_ip: ClientIp
    nas_identifier: NasIdentifier
    event: Annotated[str, Wire("registered or deleted.")]
    at: Annotated[int, Wire("Time of the event, ISO 8601 UTC.", "time", iso)]
    actor: Annotated[
        str, Wire("Name of the token or local user that deleted the device; empty for a registration.", title="By")
    ]


@dataclass(frozen=True, slots=True)
class Forwarder:
    """A source address that sends the requests of devices of one product. devices: the number of devices of this
    product behind the address."""

    domain_id: int
    ip_address: str
    device_type: str
    devices: int


@dataclass(frozen=True, slots=True)
class Heard:
    """When a source address has sent requests, in microseconds. last_unsigned: the time of the last Access-Request
    without Message-Authenticator, or None."""

    ip_address: str
    last_seen: int
    last_unsigned: int | None


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """A query for one page of a domain's devices.

    column, value: the column must be equal to the value, ignoring case. If `column` is empty, all values match. search:
    a part of a name or an address. tag: a tag in canonical form that selects the devices; empty for all.
    """

    domain_id: int
    search: str = ""
    column: str = ""
    value: str = ""
    tag: str = ""
    offset: int = 0
    limit: int = 10

    @property
    def is_selective(self) -> bool:
        """Whether the query selects some of the devices."""
        return bool(self.search or self.column or self.tag)


@dataclass(frozen=True, slots=True)
class TagSelection:
    """The devices that a wanted tag selects, by ids. own: devices whose own tag it selects. clients: RADIUS clients
    whose devices take over a selected tag. others: devices with an own tag of the same key, which do not take it
    over."""

    own: Sequence[int]
    clients: Sequence[int]
    others: Sequence[int]

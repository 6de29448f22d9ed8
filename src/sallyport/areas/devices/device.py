"""Devices and stations in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sallyport.areas.devices.rows import ABOUT, LEARNED_US, UNKNOWN, Learned
from sallyport.areas.devices.usage import Uses
from sallyport.base.tags import NO_TAGS, Tags, effective_tags
from sallyport.radius.attributes import PROXY_STATE
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import Request

if TYPE_CHECKING:
    from sallyport.areas.clients.client import Client

Identity = tuple[int, str, str, str]
"""The key of a device's row: domain, ip_address, client_ip, nas_identifier."""


def no_tags(_device: "Device") -> Tags:
    """Return the own tags of a device that is not in the inventory: none."""
    return NO_TAGS


def no_claim(_device: "Device") -> bool:
    """Return that the tags of a device that is not in the inventory do not depend on its name."""
    return False


@dataclass(slots=True)
class Posture(Learned):
    """The posture of a device: the counts that are not in the store yet, and what the service has learned.

    Times are in microseconds. Fields whose names end with `_ms` are in milliseconds.
    """

    signed: int = 0
    unsigned: int = 0
    unsigned_proxied: int = 0
    last_unsigned: int | None = None
    challenges: int = 0
    challenge_answers: int = 0

    def count(self, request: Request, at: int) -> None:
        """Count a login of the device."""
        if request.signed:
            self.signed += 1
        else:
            self.unsigned += 1
            self.last_unsigned = at
            if PROXY_STATE in request.first:
                self.unsigned_proxied += 1

    def count_challenge(self, at: int) -> None:
        """Count a challenge to the device. at: the time in microseconds."""
        self.challenges += 1
        self.unanswered = self.unanswered + 1 if at - self.challenged_at <= LEARNED_US else 1
        self.challenged_at = at

    def count_answer(self, at: int) -> None:
        """Count an answer of the device to a challenge. at: the time in microseconds."""
        self.challenge_answers += 1
        self.unanswered = 0
        self.answered_at = self.challenged_at = at

    def measure(self, known: Entry, now: float, at: int) -> None:
        """Update the learned times with a login that waits or has waited. now: seconds of the monotonic clock. at: the
        time in microseconds.

        A device has given up if much more time than its retransmission interval has passed since its last
        retransmission. Of several times after which the device gave up, the longest is kept, because a user may cancel
        a login earlier. Two things show that the device now waits longer, so that the known times are forgotten: it
        did not retransmit when it should have, or it still retransmits after it should have given up.
        """
        if known.gap <= 0:
            if self.retransmit_ms is not None and (now - known.first) * 1000 > 1.25 * self.retransmit_ms + 250:
                self.forget_times(at)
            return
        give_up_ms = self.timeout_ms(at)
        if give_up_ms is not None and (known.last - known.first) * 1000 >= give_up_ms:
            give_up_ms = None
        if now - known.last > 1.5 * known.gap + 0.5:
            measured_ms = int((known.last - known.first + known.gap) * 1000)
            if measured_ms >= (give_up_ms or 0) * ABOUT:
                self.gave_up_at = at
            give_up_ms = max(give_up_ms or 0, measured_ms)
        self.retransmit_ms, self.give_up_ms, self.measured_at = int(known.gap * 1000), give_up_ms, at

    def forget_times(self, at: int) -> None:
        """Forget the retransmission interval and the timeout of the device. at: the time in microseconds."""
        self.retransmit_ms = self.give_up_ms = None
        self.measured_at, self.gave_up_at = at, 0

    def take(self) -> "Posture":
        """Return a copy for the store, and reset the counts to 0. The measurements stay."""
        taken = Posture(self.signed, self.unsigned, self.unsigned_proxied, self.last_unsigned)
        taken.challenges, taken.challenge_answers = self.challenges, self.challenge_answers
        taken.take_newer(self)
        self.signed = self.unsigned = self.unsigned_proxied = self.challenges = self.challenge_answers = 0
        return taken

    def put_back(self, taken: "Posture") -> None:
        """Add counts that `take` returned, after the store has failed to write them."""
        self.signed += taken.signed
        self.unsigned += taken.unsigned
        self.unsigned_proxied += taken.unsigned_proxied
        self.challenges += taken.challenges
        self.challenge_answers += taken.challenge_answers

    def merge(self, later: "Posture") -> None:
        """Add the counts of a later posture of the same row, and take its newer values."""
        self.put_back(later)
        self.last_unsigned = self.last_unsigned if later.last_unsigned is None else later.last_unsigned
        self.take_newer(later)


@dataclass(slots=True, eq=False)
class Device:
    """A device in memory. Times are in microseconds.

    id: None until the device has a row. requests: the number of requests that are not in the store yet. client: the
    device's RADIUS client. tenant_id: the tenant of this client. registered: whether the product comes from the
    configuration of the RADIUS client. model, firmware: what a request told last; empty if none told it. gone: whether
    the device was deleted. find_own_tags: returns the tags of the device itself. has_claimed_tags: returns whether the
    tags depend on a name in the request. uses: the logins that are not in the store yet, by SSID, method and transport.
    """

    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    first_seen: int
    id: int | None = None
    device_name: str = field(init=False)
    device_type: str = UNKNOWN
    certainty: str = ""
    nas_device_type: str = UNKNOWN
    evidence: str = "{}"
    model: str = ""
    firmware: str = ""
    nas_port_type: str = UNKNOWN
    port_type: bytes | None = None
    last_seen: int = field(init=False)
    requests: int = 0
    tenant_id: int = 0
    look_again_at: int = 0
    client: "Client | None" = None
    registered: bool = False
    posture: Posture = field(default_factory=Posture)
    gone: bool = False
    uses: Uses = field(default_factory=dict)
    find_own_tags: Callable[["Device"], Tags] = no_tags
    has_claimed_tags: Callable[["Device"], bool] = no_claim

    def __post_init__(self) -> None:
        self.device_name = self.nas_identifier or UNKNOWN
        self.last_seen = self.first_seen

    @property
    def is_named(self) -> bool:
        """Whether the device is known by its NAS-IP-Address or NAS-Identifier."""
        return self.client_ip != self.ip_address or bool(self.nas_identifier)

    @property
    def client_id(self) -> int:
        """The id of the device's RADIUS client, or 0."""
        return self.client.id if self.client is not None else 0

    @property
    def tags(self) -> Tags:
        """The tags of the device: its own, and those of its RADIUS client with other keys."""
        own, client = self.find_own_tags(self), self.client
        if client is None or not client.tags:
            return own
        return effective_tags(own, client.tags) if own else client.tags


@dataclass(slots=True, eq=False)
class Station:
    """A station in memory: a host behind a device (Calling-Station-Id), with the user of its last login."""

    device: Device
    name: str
    user: str
    first_seen: int
    last_seen: int = field(init=False)
    requests: int = 0
    stored: bool = False
    ssid: str = ""
    port: str = ""

    def __post_init__(self) -> None:
        self.last_seen = self.first_seen

"""The values of shadow logins: what another server has decided, and how the decision of this service compares."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso

MAX_TEXT: Final = 255
MAX_VALUE: Final = 240
MAX_ATTRIBUTES: Final = 40
MAX_AT_ONCE: Final = 1000
"""Maximum number of logins in one request."""
MAX_KEPT: Final = 200_000
"""Maximum number of shadow logins of a tenant. The oldest are deleted."""
KEPT_DAYS: Final = 30
"""Days after which a shadow login is deleted, counted from the time when it was recorded."""
TOGETHER_US: Final = 60 * SECOND
"""Two records of the same user, station and NAS belong to one login if their times differ by at most this."""


class OldAnswer(StrEnum):
    """The answer of the other server. NONE: it is not known."""

    NONE = ""
    ACCEPT = "accept"
    REJECT = "reject"


class Cause(StrEnum):
    """Why the other server refused a login. FIRST_FACTOR: the password, the certificate or the account. POLICY: a
    policy, after or without a check of the password. UNKNOWN: the server does not say it."""

    UNKNOWN = ""
    FIRST_FACTOR = "first factor"
    POLICY = "policy"


class Kind(StrEnum):
    """The origin of a shadow login. LOG: the log of the other server. COPY: a copy of a request. ANSWERED: a copy that
    was made after authentication, and has the answer. START: a copy of an Accounting-Request that starts a session."""

    LOG = "log"
    COPY = "copy"
    ANSWERED = "answered"
    START = "start"


class Comparison(StrEnum):
    """How the decision of this service compares with the answer of the other server. REPLY: both accept, with other
    attributes."""

    SAME = "same"
    STRICTER = "stricter"
    LAXER = "laxer"
    REPLY = "reply"
    UNKNOWN = "unknown"


REPLY_ATTRIBUTES: Final = frozenset(
    {
        *("Tunnel-Type", "Tunnel-Medium-Type", "Tunnel-Private-Group-Id", "Filter-Id", "Service-Type", "Login-Service"),
        *(
            "Session-Timeout",
            "Idle-Timeout",
            "Termination-Action",
            "Cisco-AVPair",
            "Aruba-User-Role",
            "Aruba-User-Vlan",
        ),
        *("Airespace-Interface-Name", "Airespace-ACL-Name", "Ruckus-User-Groups", "Fortinet-Group-Name"),
    }
)
"""The attributes of an Access-Accept that a policy sets: VLAN, role, filter, time. Others, such as keys and a Class,
are of one session."""
ACCEPT: Final = OldAnswer.ACCEPT
REJECT: Final = OldAnswer.REJECT
ORDER: Final = {
    Comparison.LAXER: 0,
    Comparison.STRICTER: 1,
    Comparison.REPLY: 2,
    Comparison.UNKNOWN: 3,
    Comparison.SAME: 4,
}
"""The order of results in a report: those that need attention first."""


@dataclass(frozen=True, slots=True)
class ShadowRow:
    """A stored shadow login.

    at: the time of the login, in microseconds. client: the address or name of the RADIUS client. user_name: with its
    realm. nas: NAS-IP-Address, or the address of the client. attributes: the encoded attributes of the request, without
    credentials. place: the file and line, or the RADIUS client that sent a copy. replies: the policy attributes of the
    other server's Access-Accept, as `ShadowAttributes.replies` returns them; None if they are not known.
    """

    id: int
    at: int
    kind: str
    client: str
    user_name: str
    station: str
    nas: str
    method: str
    attributes: bytes
    answer: str
    cause: str
    reason: str
    policy: str
    place: str
    replies: str | None = None


@dataclass(frozen=True, slots=True)
class ShadowCase:
    """A shadow login with the result of the comparison."""

    id: Annotated[int, Wire("Id of the shadow login.", "shadowId", look="none")]
    at: Annotated[int, Wire("Time of the login, ISO 8601 UTC.", convert=iso, title="Time")]
    user: Annotated[str, Wire("User name as it was sent.")]
    station: Annotated[str, Wire("Calling-Station-Id.")]
    device: Annotated[str, Wire("Address of the NAS.", title="NAS")]
    result: Annotated[Comparison, Wire("`same`, `stricter`, `laxer`, `reply` or `unknown`.")]
    decision: Annotated[str, Wire("Decision of this service in enforce mode; empty if it is not known.")]
    reason: Annotated[str, Wire("Reason for the decision, or why the comparison is not possible.")]
    rule: Annotated[str, Wire("Name of the login rule that decides; empty if none does.")]
    old_answer: Annotated[str, Wire("Answer of the other server; empty if it is not known.", "oldAnswer")]
    old_reason: Annotated[str, Wire("Reason of the other server for a refusal.", "oldReason")]
    old_policy: Annotated[str, Wire("Policy of the other server that decided.", "oldPolicy")]
    place: Annotated[str, Wire("File and line of the log, or the RADIUS client that has sent the copy.")]
    rule_id: int | None = None

"""An endpoint group, and the credential policy of its users' sessions."""

import re
from dataclasses import dataclass

ACTIVE = "Active"
LONGEST_S = 2**31 - 1
_ACTIVE_STATUSES = {"active", "enabled"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:(\d+)\s*([smhdw]))(?:\s*(\d+)\s*([smhdw]))*", re.ASCII)
_PART = re.compile(r"(\d+)\s*([smhdw])", re.ASCII)
_ISO_SPAN = re.compile(r"p(?:(\d+)w)?(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewGroup:
    """The values of a group to add, or the new values of an existing group."""

    name: str
    ou: str = ""
    cn: str = ""
    dc: str = ""
    auth_flow: str = ""
    status: str = ACTIVE


@dataclass(frozen=True, slots=True)
class Group:
    """A stored group. Times are in microseconds."""

    id: int
    domain_id: int
    name: str
    ou: str
    cn: str
    dc: str
    auth_flow: str
    status: str
    users_count: int
    created_at: int
    updated_at: int

    @property
    def fields(self) -> NewGroup:
        """The values that an admin has set."""
        return NewGroup(self.name, self.ou, self.cn, self.dc, self.auth_flow, self.status)


@dataclass(frozen=True, slots=True)
class CredentialPolicy:
    """The credential policy of a group.

    id: the credPolicyId of the policy, or 0 before the policy is stored. ttl_user: the longest session of a user; if it
    is empty, there is no limit. privileged_user: whether users get root privileges; if it is empty, they get none.
    home_dir: the home directory of users; if it is empty, the system's default applies.
    """

    id: int = 0
    ttl_user: str = ""
    privileged_user: str = ""
    policy_id: int | None = None
    home_dir: str = ""


def is_active(status: str) -> bool:
    """Return whether a group with this status is active. Only an active group gives its users access."""
    return status.lower() in _ACTIVE_STATUSES


def allows(methods: str, method: str) -> bool:
    """Return whether an authentication method is allowed. methods: the allowed methods of a group or an instance,
    separated by commas. If `methods` is empty, every method is allowed."""
    return not methods or method in methods.split(",")


def ttl_seconds(text: str) -> int | None:
    """Parse a time to live such as `3600`, `8h`, `1h 30m`, `2d` or `PT8H` (ISO 8601), and return it in seconds.

    Return None if the text has another form, or if the time is 0 or longer than LONGEST_S.
    """
    folded = text.strip().lower()
    if re.fullmatch(r"\d{1,10}", folded, re.ASCII):
        seconds = int(folded)
    elif len(folded) <= 64 and _SPAN.fullmatch(folded):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(folded))
    elif len(folded) <= 64 and (found := _ISO_SPAN.fullmatch(folded)):
        seconds = sum(int(number or 0) * _UNITS[unit] for number, unit in zip(found.groups(), "wdhms", strict=True))
    else:
        return None
    return seconds if 0 < seconds <= LONGEST_S else None

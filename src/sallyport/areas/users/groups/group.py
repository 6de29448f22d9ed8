"""An endpoint group, and the credential policy of its users' sessions."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Final

from sallyport.areas.users.user import METHODS_TEXT
from sallyport.base.answer import Wire, field_names
from sallyport.base.clock import iso
from sallyport.base.wire import Text

ACTIVE = "Active"
MAX_S = 2**31 - 1
_ACTIVE_STATUSES = {"active", "enabled"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:(\d+)\s*([smhdw]))(?:\s*(\d+)\s*([smhdw]))*", re.ASCII)
_PART = re.compile(r"(\d+)\s*([smhdw])", re.ASCII)
_ISO_SPAN = re.compile(r"p(?:(\d+)w)?(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?", re.ASCII)


UNIT_TEXT: Final = "Organizational unit (OU) of the group in a directory."
NAME_TEXT: Final = "Common name (CN) of the group in a directory."
COMPONENT_TEXT: Final = "Domain component (DC) of the group in a directory."
_LINE = Annotated[str, Text(255)]


@dataclass(frozen=True, slots=True)
class Group:
    """A group. Times are in microseconds. The values that follow from the store have defaults, for a new group."""

    name: Annotated[str, Wire("Name of the group.", "groupName", after="groupId", title="Group")]
    _: KW_ONLY
    id: Annotated[int, Wire("Id of the group.", "groupId", title="Id")] = 0
    domain_id: int = 0
    users_count: Annotated[int, Wire("Number of users in the group.", "usersCount", title="Users")] = 0
    status: Annotated[str, Wire("Status of the group.")] = ACTIVE
    auth_flow: Annotated[str, Wire(METHODS_TEXT, "authFlow", kind=_LINE, title="Methods")] = ""
    ou: Annotated[str, Wire(UNIT_TEXT, kind=_LINE, title="OU")] = ""
    cn: Annotated[str, Wire(NAME_TEXT, kind=_LINE, title="CN")] = ""
    dc: Annotated[str, Wire(COMPONENT_TEXT, kind=_LINE, title="DC")] = ""
    created_at: Annotated[int, Wire("Time when the group was added, ISO 8601 UTC.", "created", iso, title="Added")] = 0
    updated_at: Annotated[int, Wire("Time of the last change, ISO 8601 UTC.", "updated", iso, title="Changed")] = 0

    @property
    def settings(self) -> dict[str, str]:
        """The values that an admin has set, by field."""
        return {field: getattr(self, field) for field in SETTINGS.values()}


SETTINGS: Final = {
    name: field
    for name, field in field_names(Group).items()
    if name not in ("groupId", "usersCount", "created", "updated")
}
"""The field of `Group` for each setting, by its name in bodies."""


@dataclass(frozen=True, slots=True)
class CredentialPolicy:
    """The credential policy of a group. id: 0 before the policy is stored."""

    id: Annotated[int, Wire("Id of the credential policy.", "credPolicyId")] = 0
    ttl_user: Annotated[
        str,
        Wire(
            "Longest session of a user: seconds, or a span such as 8h, 30m, 1d or PT8H. If it is empty, there is no "
            "limit.",
            "ttlUser",
        ),
    ] = ""
    privileged_user: Annotated[
        str,
        Wire(
            "true, yes or 1 gives root privileges to the group's users; false, no, 0 or an empty text gives none.",
            "priviligedUser",
        ),
    ] = ""
    policy_id: Annotated[
        int | None, Wire("Id of the password policy for the group's users, or null if there is none.", "policyId")
    ] = None
    home_dir: Annotated[
        str,
        Wire(
            "Absolute path of a user's home directory on the group's instances. If it is empty, the system's default "
            "applies.",
            "homeDir",
        ),
    ] = ""


def is_active(status: str) -> bool:
    """Return whether a group with this status is active. Only an active group gives its users access."""
    return status.lower() in _ACTIVE_STATUSES


def allows(methods: str, method: str) -> bool:
    """Return whether an authentication method is allowed. methods: the allowed methods of a group or an instance,
    separated by commas. If `methods` is empty, every method is allowed."""
    return not methods or method in methods.split(",")


def ttl_seconds(text: str) -> int | None:
    """Parse a time to live such as `3600`, `8h`, `1h 30m`, `2d` or `PT8H` (ISO 8601), and return it in seconds.

    Return None if the text has another form, or if the time is 0 or longer than MAX_S.
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
    return seconds if 0 < seconds <= MAX_S else None

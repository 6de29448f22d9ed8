"""An instance: a machine of a domain."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Final

from sallyport.areas.users.user import METHODS_TEXT
from sallyport.base.answer import Wire, field_names
from sallyport.base.clock import iso
from sallyport.base.wire import Text

NAME = "Name of the instance, unique within the domain."
SYSTEM = "Operating system: 1 Linux, 2 Windows, 3 macOS, 4 network device, 0 unknown."
PUBLIC_ADDRESS = "Public IP address; empty if unknown."
PRIVATE_ADDRESS = "Private IP address; empty if unknown."

SYSTEMS = {1: "Linux", 2: "Windows", 3: "macOS", 4: "Network device"}
"""Names of operating systems, by osId."""
UNKNOWN_SYSTEM = "Unknown"
ACTIVE, INACTIVE = "Active", "Inactive"
"""The status of an instance: Active while its agent sends messages, else Inactive."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance. Times are in microseconds. The values that follow from the store have defaults, for a new
    instance."""

    name: Annotated[str, Wire(NAME, "instanceName", after="totalUsers", title="Instance")]
    _: KW_ONLY
    total_users: Annotated[int, Wire("Number of users assigned to the instance.", "totalUsers", title="Users")] = 0
    public_ip: Annotated[str, Wire(PUBLIC_ADDRESS, "publicIp", title="Public address", look="code")] = ""
    private_ip: Annotated[str, Wire(PRIVATE_ADDRESS, "privateIp", title="Private address", look="code")] = ""
    host_name: Annotated[str, Wire("Host name that the machine reported; empty if unknown.", "hostName")] = ""
    status: Annotated[str, Wire("Active while the instance's agent sends messages, else Inactive.", title="Agent")] = (
        INACTIVE
    )
    id: Annotated[int, Wire("Id of the instance.", "instanceId", title="Id")] = 0
    total_groups: Annotated[int, Wire("Number of groups assigned to the instance.", "totalGroups", title="Groups")] = 0
    os_id: Annotated[int, Wire(SYSTEM, "osId", look="none")] = 0
    auth_type: Annotated[str, Wire(METHODS_TEXT, "authType", kind=Annotated[str, Text(255)], title="Methods")] = ""
    created_at: Annotated[
        int, Wire("Time when the instance was added, ISO 8601 UTC.", "created", iso, title="Added")
    ] = 0
    updated_at: Annotated[int, Wire("Time of the last change, ISO 8601 UTC.", "updated", iso, title="Changed")] = 0
    domain_id: int = 0

    @property
    @Wire(
        "Operating system: Linux, Windows, macOS, Network device or Unknown.",
        "osName",
        after="instanceName",
        title="System",
    )
    def os_name(self) -> str:
        """The name of the operating system."""
        return SYSTEMS.get(self.os_id, UNKNOWN_SYSTEM)

    @property
    def settings(self) -> dict[str, str | int]:
        """The values that an admin or an agent has set, by field."""
        return {field: getattr(self, field) for field in SETTINGS.values()}


SETTINGS: Final = {
    name: field
    for name, field in field_names(Instance).items()
    if field in ("name", "os_id", "public_ip", "private_ip", "host_name", "auth_type")
}
"""The field of `Instance` for each setting, by its name in bodies and import files."""


@dataclass(frozen=True, slots=True)
class InstanceQuery:
    """A query for instances of a domain. search: a text that the name, host name or address must contain, or empty for
    all instances. group_id: the id of the group to which the instances must belong, or 0 for all instances."""

    domain_id: int
    search: str = ""
    group_id: int = 0
    offset: int = 0
    limit: int = 10

"""An instance: a machine of a domain."""

from dataclasses import dataclass
from typing import Annotated

from sallyport.areas.users.user import METHODS_TEXT
from sallyport.base.answer import Wire
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
class NewInstance:
    """The values of an instance to add, or the new values of an existing instance. public_ip, private_ip: the addresses
    as text, or empty."""

    name: str
    os_id: int = 0
    public_ip: str = ""
    private_ip: str = ""
    host_name: str = ""
    auth_type: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """A stored instance. Times are in microseconds."""

    total_users: Annotated[int, Wire("Number of users assigned to the instance.", "totalUsers", title="Users")]
    name: Annotated[str, Wire(NAME, "instanceName", title="Instance")]
    public_ip: Annotated[str, Wire(PUBLIC_ADDRESS, "publicIp", after="osName", title="Public address", look="code")]
    private_ip: Annotated[
        str, Wire(PRIVATE_ADDRESS, "privateIp", after="publicIp", title="Private address", look="code")
    ]
    host_name: Annotated[
        str, Wire("Host name that the machine reported; empty if unknown.", "hostName", after="privateIp")
    ]
    status: Annotated[
        str, Wire("Active while the instance's agent sends messages, else Inactive.", after="hostName", title="Agent")
    ]
    id: Annotated[int, Wire("Id of the instance.", "instanceId", after="status", title="Id")]
    total_groups: Annotated[
        int, Wire("Number of groups assigned to the instance.", "totalGroups", after="instanceId", title="Groups")
    ]
    os_id: Annotated[int, Wire(SYSTEM, "osId", after="totalGroups", look="none")]
    auth_type: Annotated[
        str, Wire(METHODS_TEXT, "authType", kind=Annotated[str, Text(255)], after="osId", title="Methods")
    ]
    created_at: Annotated[
        int, Wire("Time when the instance was added, ISO 8601 UTC.", "created", iso, after="authType", title="Added")
    ]
    updated_at: Annotated[
        int, Wire("Time of the last change, ISO 8601 UTC.", "updated", iso, after="created", title="Changed")
    ]
    domain_id: int

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
    def fields(self) -> NewInstance:
        """The values that an admin or an agent has set."""
        return NewInstance(self.name, self.os_id, self.public_ip, self.private_ip, self.host_name, self.auth_type)


@dataclass(frozen=True, slots=True)
class InstanceQuery:
    """A query for instances of a domain. search: a text that the name, host name or address must contain, or empty for
    all instances. group_id: the id of the group to which the instances must belong, or 0 for all instances."""

    domain_id: int
    search: str = ""
    group_id: int = 0
    offset: int = 0
    limit: int = 10

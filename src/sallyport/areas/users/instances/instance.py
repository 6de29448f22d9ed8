"""An instance: a machine of a domain."""

from dataclasses import dataclass

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

    id: int
    domain_id: int
    name: str
    os_id: int
    public_ip: str
    private_ip: str
    host_name: str
    status: str
    auth_type: str
    total_users: int
    total_groups: int
    created_at: int
    updated_at: int

    @property
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

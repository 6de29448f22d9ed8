"""What an instance is, in the service and in the interface."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from sallyport.base.addresses import parse_address
from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.endpoints.bodies import Assignment, Methods
from sallyport.web.paging import IsMinimum, Paged
from sallyport.web.scope import Body, Id, Many, Name, OfDomain, Text, Whole

SYSTEMS = {1: "Linux", 2: "Windows", 3: "macOS", 4: "Network device"}
"""Operating systems by osId."""
UNKNOWN_SYSTEM = "Unknown"
_COLUMNS = {
    "instanceName": "name",
    "osId": "os_id",
    "publicIp": "public_ip",
    "privateIp": "private_ip",
    "hostName": "host_name",
    "authType": "auth_type",
}
FILE_COLUMNS = tuple(_COLUMNS)
"""What a file says of an instance."""
INACTIVE = "Inactive"
"""The status of an instance that no agent has spoken for."""


def _address(value: object) -> object:
    text = str(value).strip()
    try:
        return str(parse_address(text)) if text else ""
    except ValueError:
        raise unfit("an IP address") from None


AddressText = Annotated[Text, BeforeValidator(_address)]
"""An IP address as text; empty for none."""


class InstanceFields(Body):
    """What is said of an instance, by an operation or in a file."""

    instanceName: Name = Field(validation_alias=AliasChoices("instanceName", "instance_name"))
    osId: Id = Field(default=0, validation_alias=AliasChoices("osId", "os_id"))
    publicIp: AddressText = Field(default="", validation_alias=AliasChoices("publicIp", "public_ip"))
    privateIp: AddressText = Field(default="", validation_alias=AliasChoices("privateIp", "private_ip"))


class ImportedInstance(InstanceFields):
    """A row of a file. What it does not say stays."""

    hostName: Text = ""
    authType: Methods = ""

    def onto(self, old: "NewInstance | None") -> "NewInstance":
        """What the instance is once this is said of it."""
        said = self.model_dump(include=self.model_fields_set & _COLUMNS.keys())
        columns = {_COLUMNS[field]: value for field, value in said.items()}
        return NewInstance(**columns) if old is None else replace(old, **columns)


class AddInstance(InstanceFields, OfDomain):
    """Body of addInstance, in either spelling."""

    domainId: Whole = Field(validation_alias=AliasChoices("domainId", "domain_id"))


class InstanceAdded(Model):
    """Answer of addInstance."""

    instanceId: str
    code: int = 200
    message: str


class ListInstances(OfDomain, Paged):
    """Body of list. filter: a part of a name, an address or a host name. groupId 0: of any group, or none."""

    filter: Text = ""
    groupId: Id = 0


class InstanceEntry(Model):
    """An instance in the list. totalUsers, totalGroups: those assigned to it."""

    totalUsers: int
    instanceName: str
    osName: str
    publicIp: str
    privateIp: str
    hostName: str
    status: str
    instanceId: int
    totalGroups: int


class InstanceList(Model):
    """Answer of list. groupId: the one asked for."""

    domainId: int
    groupId: int
    totalCount: int
    totalIsMinimum: IsMinimum = False
    instances: list[InstanceEntry]


class UpdateAuthType(OfDomain):
    """Body of updateAuthType."""

    instanceId: Id
    authType: Methods


class AssignUsers(Assignment):
    """Body of assignUsersToMachines."""

    instanceIds: Many[Id] = Field(min_length=1)
    userIds: Many[Id] = Field(min_length=1)


class AssignGroups(Assignment):
    """Body of assignGroupToMachines."""

    instanceId: Many[Id] = Field(min_length=1)
    groupId: Many[Id] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An instance to be. Addresses as text; empty where there is none."""

    name: str
    os_id: int = 0
    public_ip: str = ""
    private_ip: str = ""
    host_name: str = ""
    auth_type: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance as it is stored. Times in microseconds."""

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
        """The operating system for people."""
        return SYSTEMS.get(self.os_id, UNKNOWN_SYSTEM)

    @property
    def fields(self) -> NewInstance:
        """What was said of it."""
        return NewInstance(self.name, self.os_id, self.public_ip, self.private_ip, self.host_name, self.auth_type)


@dataclass(frozen=True, slots=True)
class InstanceQuery:
    """Which instances of a domain. search: a part of a name or address. group_id 0: of any group, or none."""

    domain_id: int
    search: str = ""
    group_id: int = 0
    offset: int = 0
    limit: int = 10

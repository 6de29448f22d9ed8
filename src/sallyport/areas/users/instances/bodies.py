"""The requests and answers of instances."""

from dataclasses import replace
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from sallyport.areas.users.bodies import Assignment, Methods
from sallyport.areas.users.instances.instance import (
    NAME,
    PRIVATE_ADDRESS,
    PUBLIC_ADDRESS,
    SETTINGS,
    SYSTEM,
    Instance,
)
from sallyport.base.addresses import parse_address
from sallyport.base.model import Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import Body, DomainId, Id, IsMinimum, Many, Name, OfDomain, Paged, Search, Text, TotalCount

FILE_COLUMNS = ("instanceName", "osId", "publicIp", "privateIp", "hostName", "authType")
"""The columns of an import file with instances."""


def _address(value: object) -> object:
    text = str(value).strip()
    try:
        return str(parse_address(text)) if text else ""
    except ValueError:
        raise unfit("must be an IP address") from None


AddressText = Annotated[Text, BeforeValidator(_address)]
"""An IP address as text. An empty text means that there is no address."""
InstanceId = Annotated[Id, Field(description="Id of the instance, as instances/list returns it.")]


class InstanceFields(Body):
    """The values of an instance in a request or in a row of an import file."""

    instanceName: Name = Field(validation_alias=AliasChoices("instanceName", "instance_name"), description=NAME)
    osId: Id = Field(default=0, validation_alias=AliasChoices("osId", "os_id"), description=SYSTEM)
    publicIp: AddressText = Field(
        default="", validation_alias=AliasChoices("publicIp", "public_ip"), description=PUBLIC_ADDRESS
    )
    privateIp: AddressText = Field(
        default="", validation_alias=AliasChoices("privateIp", "private_ip"), description=PRIVATE_ADDRESS
    )

    hostName: Text = Field(default="", description="Host name of the machine; empty if unknown.")
    authType: Methods = ""

    def onto(self, old: Instance | None) -> Instance:
        """Return an instance with these values. old: the existing instance, from which the fields that are not given
        are taken, or None for a new instance."""
        given = self.model_dump(include=self.model_fields_set & SETTINGS.keys())
        fields = {SETTINGS[name]: value for name, value in given.items()}
        return Instance(**fields) if old is None else replace(old, **fields)


class ImportedInstance(InstanceFields):
    """A row of an import file. If the row has no value for a field, an existing instance keeps its value."""


class AddInstance(InstanceFields, OfDomain):
    """Request body of the operation `addInstance`. Some fields have several accepted names."""

    domainId: DomainId = Field(validation_alias=AliasChoices("domainId", "domain_id"))


class ConfiguredInstance(AddInstance):
    """An instance in a file."""

    passwordPolicies: list[Text] = Field(
        default_factory=list, description="Names of the password policies for the passwords of the instance's users."
    )


class InstanceAdded(Model):
    """Response body of the operation `addInstance`."""

    instanceId: str = Field(description="Id of the new instance.")
    code: int = Field(default=200, description="HTTP status of the answer.")
    message: str = Field(description="Result in words.")


class ListInstances(OfDomain, Paged):
    """Request body of the operation `list`."""

    filter: Search = Field(
        default="",
        description="Part of a name, an address or a host name, to list only matching instances. If it is empty, all "
        "instances are listed.",
    )
    groupId: Id = Field(default=0, description="Id of a group, to list only its instances, or 0 to list all instances.")


@answer_of(Instance)
class InstanceEntry(Model):
    """An instance in the answer of the operation `list`."""


class InstanceList(Model):
    """Response body of the operation `list`."""

    domainId: DomainId
    groupId: int = Field(description="The groupId of the request, or 0 if the request has none.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False
    instances: list[InstanceEntry] = Field(description="Instances on this page, ordered by id.")


class UpdateAuthType(OfDomain):
    """Request body of the operation `updateAuthType`."""

    instanceId: InstanceId
    authType: Methods


class DeleteInstance(OfDomain):
    """Request body of the operation `deleteInstance`."""

    instanceId: InstanceId


class AssignUsers(Assignment):
    """Request body of the operation `assignUsersToMachines`."""

    instanceIds: Many[Id] = Field(min_length=1, description="Ids of instances.")
    userIds: Many[Id] = Field(min_length=1, description="Ids of the endpoint users to assign or remove.")


class AssignGroups(Assignment):
    """Request body of the operation `assignGroupToMachines`."""

    instanceId: Many[Id] = Field(min_length=1, description="Ids of instances.")
    groupId: Many[Id] = Field(min_length=1, description="Ids of groups.")

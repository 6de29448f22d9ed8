"""The requests and answers of endpoint groups and their credential policies."""

import re
from pathlib import PureWindowsPath
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from sallyport.agentwire.fields import MAX_PATH, PATH
from sallyport.areas.users.bodies import MAX_ENTRIES, Assignment, FlagText, Methods
from sallyport.areas.users.groups.group import (
    ACTIVE,
    COMPONENT_TEXT,
    NAME_TEXT,
    UNIT_TEXT,
    CredentialPolicy,
    Group,
    ttl_seconds,
)
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.answer import wire_fields
from sallyport.base.model import Model, SentModel, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import Id, IsMinimum, LongText, Many, Name, OfDomain, Paged, Search, Text, TotalCount


def _time_to_live(value: object) -> object:
    text = str(value).strip()
    if isinstance(value, bool) or (text and ttl_seconds(text) is None):
        raise unfit("must be a whole number of seconds above 0, or a duration such as 8h, 30m, 1d or PT8H")
    return text


def _directory(value: object) -> object:
    text = str(value).strip()
    if not text:
        return ""
    windows = PureWindowsPath(text)
    if text.startswith("/"):
        text = text.rstrip("/")
        if len(text) > MAX_PATH or not re.fullmatch(PATH, text):
            # Agents accept only this form.
            raise unfit("must be an absolute path of letters, digits, dots, underscores and hyphens")
    elif not windows.is_absolute() or ".." in windows.parts:
        raise unfit("must be an absolute path such as /home/ann")
    return text


def _policy(value: object) -> object:
    text = str(value).strip()
    if isinstance(value, bool) or (text and not re.fullmatch(r"\d{1,18}", text, re.ASCII)):
        raise unfit("must be the policyId of a password policy")
    return text


_GROUP_ID = "Id of the group, as listEndpointGroup returns it."
_MESSAGE = "Result in words."
_POLICY = {each.name: each.wire.description for each in wire_fields(CredentialPolicy)}
GroupId = Annotated[Id, Field(description=_GROUP_ID)]
GroupName = Annotated[Name, Field(description="Name of the group, unique within the domain.")]
Status = Annotated[
    Name,
    Field(
        max_length=64,
        description="With Active or Enabled (case-insensitive), the group gives its users access. With any other text, "
        "it gives no access.",
    ),
]
OrganizationalUnit = Annotated[Text, Field(description=UNIT_TEXT)]
CommonName = Annotated[Text, Field(description=NAME_TEXT)]
DomainComponent = Annotated[Text, Field(description=COMPONENT_TEXT)]
TimeToLive = Annotated[Text, BeforeValidator(_time_to_live)]
Directory = Annotated[LongText, BeforeValidator(_directory)]
PolicyId = Annotated[Text, BeforeValidator(_policy)]


class ListGroups(OfDomain, Paged):
    """Request body of the operation `listEndpointGroup`."""

    filter: Search = Field(
        default="",
        description="Part of a group's name, to list only matching groups. If it is empty, all groups are listed.",
    )
    instanceId: Id = Field(
        default=0,
        description="Id of an instance, to list only the groups to which it belongs, or 0 to list all groups.",
    )


@answer_of(CredentialPolicy)
class CredentialPolicyEntry(Model):
    """The credential policy of a group."""


@answer_of(Group)
class GroupFields(Model):
    """The fields of a group."""


class GroupEntry(GroupFields):
    """A group in the answer of `listEndpointGroup`."""

    credentialPolicy: CredentialPolicyEntry | None = Field(
        description="Credential policy of the group, or null if there is none."
    )


class GroupList(Model):
    """Response body of the operation `listEndpointGroup`."""

    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False
    groups: list[GroupEntry] = Field(description="Groups on this page, ordered by id.")


class AddGroup(OfDomain):
    """Request body of the operation `addInstanceGroup`."""

    groupName: GroupName
    instanceIds: Many[Id] = Field(
        default_factory=list, description="Ids of the instances to which the group gives access."
    )
    ou: OrganizationalUnit = ""
    cn: CommonName = ""
    dc: DomainComponent = ""


class ConfiguredPolicy(SentModel):
    """The credential policy of a group in a file."""

    ttlUser: TimeToLive = Field(default="", description=_POLICY["ttlUser"])
    priviligedUser: FlagText = Field(default="", description=_POLICY["priviligedUser"])
    policy: Text = Field(default="", description="Name of the password policy for the group's users.")
    homeDir: Directory = Field(default="", description=_POLICY["homeDir"])


class ConfiguredGroup(AddGroup):
    """A group in a file."""

    status: Status = ACTIVE
    authFlow: Methods = ""
    instances: list[Text] = Field(
        default_factory=list, description="Names of the instances to which the group gives access."
    )
    credentialPolicy: ConfiguredPolicy | None = Field(default=None, description="Credential policy of the group.")


class GroupAdded(Model):
    """Response body of the operation `addInstanceGroup`."""

    instanceId: int = Field(description="Id of the new group.")
    Code: str = Field(default="200", description="HTTP status of the answer.")
    Message: str = Field(description=_MESSAGE)


class DeleteGroups(OfDomain):
    """Request body of the operation `deleteEndpointGroup`."""

    id: Many[Id] = Field(
        min_length=1,
        max_length=MAX_ENTRIES,
        validation_alias=AliasChoices("id", "epmGroupId"),
        description="Ids of the groups to delete.",
    )


class EditGroup(OfDomain):
    """Request body of the operation `editInstanceGroup`. An absent field keeps its value."""

    groupId: GroupId
    groupName: GroupName | None = None
    instanceIds: Many[Id] | None = Field(
        default=None, description="Ids of the instances that replace the instances of the group."
    )
    ou: OrganizationalUnit | None = None
    cn: CommonName | None = None
    dc: DomainComponent | None = None
    status: Status | None = None


class AssignUsersToGroup(Assignment):
    """Request body of the operation `assignUsersToEndpointGroup`."""

    groupId: GroupId
    userIds: Many[Id] = Field(min_length=1, description="Ids of the endpoint users to add or remove.")


class AddAuthFlow(OfDomain):
    """Request body of the operation `addAuthFlowToInstanceGroup`."""

    groupId: GroupId
    authFlow: Methods


class AuthFlowAdded(Model):
    """Response body of the operation `addAuthFlowToInstanceGroup`."""

    instanceId: int = Field(description="Id of the group.")
    code: str = Field(default="200", description="HTTP status of the answer.")
    message: str = Field(description=_MESSAGE)


class UpdateStatus(OfDomain):
    """Request body of the operation `updateInstanceGroupStatus`."""

    groupId: GroupId
    status: Status


class OneGroup(OfDomain):
    """Request body of the operation `fetchInstanceGroupDetail`."""

    groupId: GroupId


@answer_of(Instance, "instanceName", "hostName", "privateIp", "publicIp")
class FirstMember(Model):
    """The first instance of a group. If the group has no instances, all fields are empty."""

    os: str = Field(description="Operating system, such as Linux.")


@answer_of(Instance, "instanceId", "status")
class Member(FirstMember):
    """An instance of a group."""


class GroupDetail(FirstMember):
    """Response body of the operation `fetchInstanceGroupDetail`: the fields of the group's first instance, the status
    of the group, and all its instances."""

    state: str = Field(description="Status of the group.")
    instances: list[Member] = Field(description="First 1,000 instances of the group, ordered by id.")


class SetCredentialPolicy(OfDomain):
    """Request body of the operation `updateCredentialPolicyToEndpointGroup`. An absent field keeps its value. An empty
    field clears the value."""

    groupId: GroupId
    ttlUser: TimeToLive | None = Field(default=None, description=_POLICY["ttlUser"])
    priviligedUser: FlagText | None = Field(default=None, description=_POLICY["priviligedUser"])
    policyId: PolicyId | None = Field(default=None, description="Id of the password policy for the group's users.")
    homeDir: Directory | None = Field(default=None, description=_POLICY["homeDir"])

    @model_validator(mode="after")
    def _has_a_field(self) -> "SetCredentialPolicy":
        if {self.ttlUser, self.priviligedUser, self.policyId, self.homeDir} == {None}:
            fields = "ttlUser", "priviligedUser", "policyId", "homeDir"
            raise unfit(f"at least one of {', '.join(fields)} is needed", *fields)
        return self


class DeleteCredentialPolicy(OfDomain):
    """Request body of the operation `deleteCredentialPolicyToEndpointGroup`."""

    groupId: GroupId
    credPolicyId: PolicyId = Field(
        default="",
        description="Id of the credential policy to delete. The operation fails if the group has another credential "
        "policy. If it is empty, the id is not checked.",
    )

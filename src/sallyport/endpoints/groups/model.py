"""What an endpoint group is, in the service and in the interface."""

import re
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from sallyport.base.agentwire.fields import MAX_PATH, PATH
from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.endpoints.bodies import MAX_ENTRIES, Assignment, FlagText, Methods
from sallyport.web.paging import IsMinimum, Paged
from sallyport.web.scope import Id, LongText, Many, Name, OfDomain, Text

ACTIVE = "Active"
_GRANTING = {"active", "enabled"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:(\d+)\s*([smhdw]))(?:\s*(\d+)\s*([smhdw]))*", re.ASCII)
_PART = re.compile(r"(\d+)\s*([smhdw])", re.ASCII)
_ISO_SPAN = re.compile(r"p(?:(\d+)w)?(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?", re.ASCII)
LONGEST_S = 2**31 - 1


def grants(status: str) -> bool:
    """Whether a group of that status gives its users anything."""
    return status.lower() in _GRANTING


def allows(methods: str, method: str) -> bool:
    """Whether one may authenticate by a method, of a group's or an instance's own; where they have none, by any."""
    return not methods or method in methods.split(",")


def ttl_seconds(text: str) -> int | None:
    """The seconds of a time to live: `3600`, `8h`, `1h 30m`, `2d`, or ISO 8601 as in `PT8H`; None where it is none."""
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


def _time_to_live(value: object) -> object:
    text = str(value).strip()
    if isinstance(value, bool) or (text and ttl_seconds(text) is None):
        raise unfit("a whole number of seconds above 0, or a span such as 8h, 30m, 1d or PT8H")
    return text


def _directory(value: object) -> object:
    text = str(value).strip()
    if not text:
        return ""
    windows = PureWindowsPath(text)
    if text.startswith("/"):
        text = text.rstrip("/")
        if len(text) > MAX_PATH or not re.fullmatch(PATH, text):
            raise unfit("an absolute path of letters, digits, dots, underscores and hyphens")  # what an agent takes
    elif not windows.is_absolute() or ".." in windows.parts:
        raise unfit("an absolute path")
    return text


def _policy(value: object) -> object:
    text = str(value).strip()
    if isinstance(value, bool) or (text and not re.fullmatch(r"\d{1,18}", text, re.ASCII)):
        raise unfit("a policyId")
    return text


Status = Annotated[Name, Field(max_length=64)]
TimeToLive = Annotated[Text, BeforeValidator(_time_to_live)]
Directory = Annotated[LongText, BeforeValidator(_directory)]
PolicyId = Annotated[Text, BeforeValidator(_policy)]


class ListGroups(OfDomain, Paged):
    """Body of listEndpointGroup. filter: a part of a name."""

    filter: Text = ""


class GroupEntry(Model):
    """A group in the list."""

    groupId: int
    groupName: str
    usersCount: int


class GroupList(Model):
    """Answer of listEndpointGroup."""

    totalCount: int
    totalIsMinimum: IsMinimum = False
    groups: list[GroupEntry]


class AddGroup(OfDomain):
    """Body of addInstanceGroup."""

    groupName: Name
    instanceIds: Many[Id] = Field(default_factory=list)
    ou: Text = ""
    cn: Text = ""
    dc: Text = ""


class GroupAdded(Model):
    """Answer of addInstanceGroup. instanceId: the group's id."""

    instanceId: int
    Code: str = "200"
    Message: str


class DeleteGroups(OfDomain):
    """Body of deleteEndpointGroup."""

    id: Many[Id] = Field(min_length=1, max_length=MAX_ENTRIES, validation_alias=AliasChoices("id", "epmGroupId"))


class EditGroup(OfDomain):
    """Body of editInstanceGroup. What is absent stays; `instanceIds` takes the place of those before."""

    groupId: Id
    groupName: Name | None = None
    instanceIds: Many[Id] | None = None
    ou: Text | None = None
    cn: Text | None = None
    dc: Text | None = None
    status: Status | None = None


class AssignUsersToGroup(Assignment):
    """Body of assignUsersToEndpointGroup."""

    groupId: Id
    userIds: Many[Id] = Field(min_length=1)


class AddAuthFlow(OfDomain):
    """Body of addAuthFlowToInstanceGroup."""

    groupId: Id
    authFlow: Methods


class AuthFlowAdded(Model):
    """Answer of addAuthFlowToInstanceGroup. instanceId: the group's id."""

    instanceId: int
    code: str = "200"
    message: str


class UpdateStatus(OfDomain):
    """Body of updateInstanceGroupStatus."""

    groupId: Id
    status: Status


class OneGroup(OfDomain):
    """Body of fetchInstanceGroupDetail."""

    groupId: Id


class Member(Model):
    """An instance of a group."""

    instanceId: int
    instanceName: str
    os: str
    hostName: str
    privateIp: str
    publicIp: str
    status: str


class GroupDetail(Model):
    """Answer of fetchInstanceGroupDetail: the group's first instance, its state, and its first 1,000 instances."""

    instanceName: str = ""
    os: str = ""
    hostName: str = ""
    privateIp: str = ""
    publicIp: str = ""
    state: str
    instances: list[Member]


class SetCredentialPolicy(OfDomain):
    """Body of updateCredentialPolicyToEndpointGroup. What is absent stays, what is empty is cleared."""

    groupId: Id
    ttlUser: TimeToLive | None = None
    priviligedUser: FlagText | None = None
    policyId: PolicyId | None = None
    homeDir: Directory | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "SetCredentialPolicy":
        if {self.ttlUser, self.priviligedUser, self.policyId, self.homeDir} == {None}:
            fields = "ttlUser", "priviligedUser", "policyId", "homeDir"
            raise unfit(f"one of {', '.join(fields)} is needed", *fields)
        return self


class DeleteCredentialPolicy(OfDomain):
    """Body of deleteCredentialPolicyToEndpointGroup. credPolicyId: the group's, or empty."""

    groupId: Id
    credPolicyId: PolicyId = ""


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A group to be, or what is said of one."""

    name: str
    ou: str = ""
    cn: str = ""
    dc: str = ""
    auth_flow: str = ""
    status: str = ACTIVE


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it is stored. Times in microseconds."""

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
        """What was said of it."""
        return NewGroup(self.name, self.ou, self.cn, self.dc, self.auth_flow, self.status)


@dataclass(frozen=True, slots=True)
class CredentialPolicy:
    """The credential policy of a group. id: its credPolicyId; 0 before it is kept."""

    id: int = 0
    ttl_user: str = ""
    privileged_user: str = ""
    policy_id: int | None = None
    home_dir: str = ""

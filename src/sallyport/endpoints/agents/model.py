"""The bodies of the operations: what admins ask, and what agents send."""

import re
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sallyport.base.agentwire import state
from sallyport.base.agentwire.state import Removal, TriggerKind
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.base.wire import JSON, decode
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.bodies import AnyAction
from sallyport.web.paging import Paged
from sallyport.web.scope import Body, Flag, Id, Many, OfDomain, Text, Whole

MessageT = TypeVar("MessageT")
_SCOPE = ("orgId", "tenantId")
_INDEX = re.compile(r"\[\d+\]")


class ListAgents(OfDomain, Paged):
    """Body of listAgents. status: Active or Inactive; empty for all."""

    status: Text = ""


class AgentEntry(Model):
    """An agent in the list. upToDate: it has reported on the state that is wanted now."""

    instanceId: int
    instanceName: str
    hostName: str
    status: str
    lastSeen: str
    enrolled: str
    agentVersion: str
    wantedVersion: int
    appliedVersion: int
    upToDate: bool


class AgentList(Model):
    """Answer of listAgents."""

    agents: list[AgentEntry]
    totalCount: int


class OneAgent(OfDomain):
    """Body that names one instance."""

    instanceId: Id


class OrderEntry(Model):
    """An order. outcome: waiting, done or failed; error: why it failed."""

    orderId: int
    instanceId: int
    kind: str
    userNames: list[str]
    ordered: str
    outcome: str
    ended: str
    error: str


class PrivilegedEntry(Model):
    """An account with root's rights. via: the groups or sudo rules that give them. wanted: whether the state gives
    them."""

    name: str
    via: list[str] = Field(default=[])
    managed: bool = False
    wanted: bool = False


class PrivilegeEntry(Model):
    """The last privilege status of an agent. time: when the service received it, ISO 8601. version: of the state that
    the agent had. more: whether the list is cut."""

    time: str
    version: int
    privileged: list[PrivilegedEntry]
    more: bool = False


class AgentStatus(Model):
    """Answer of agentStatus. users: the accounts that should be there. unfit: users whose names no host takes. report:
    the newest. privilegeStatus: null before the first one."""

    agent: AgentEntry
    waits: bool
    users: list[str]
    unfit: list[str]
    lastDiscovery: str
    lastPrivilegeStatus: str
    privilegeStatus: PrivilegeEntry | None
    report: "ReportEntry | None"
    orders: list[OrderEntry]


class ListReports(OneAgent, Paged):
    """Body of listReports."""


class ReportEntry(Model):
    """A report. told: actions, managed accounts, drift and versions, of long lists the beginnings."""

    reportId: str
    time: str
    version: int
    outcome: str
    told: dict[str, object]


class ReportList(Model):
    """Answer of listReports."""

    reports: list[ReportEntry]
    totalCount: int


class ListDrift(OfDomain, Paged):
    """Body of listDrift. instanceId: of this one; lasting: only what is not over."""

    instanceId: Id | None = None
    lasting: Flag = True


class DriftEntry(Model):
    """What someone else changed on a machine. ended: empty while it lasts."""

    driftId: int
    instanceId: int
    kind: str
    name: str
    detail: str
    putBack: bool
    first: str
    last: str
    ended: str


class DriftList(Model):
    """Answer of listDrift."""

    drift: list[DriftEntry]
    totalCount: int


def _kind(value: object) -> object:
    if str(value).strip().lower() not in ("account", "group"):
        raise unfit("account or group")
    return str(value).strip().lower()


class ListDiscovered(OneAgent, Paged):
    """Body of listDiscovered."""

    kind: Annotated[str, BeforeValidator(_kind)] = "account"


class DiscoveredEntry(Model):
    """An account or a group of a machine. userId: of the endpoint user of that name, or 0."""

    name: str
    userId: int
    found: str
    told: dict[str, object]


class DiscoveredList(Model):
    """Answer of listDiscovered."""

    discovered: list[DiscoveredEntry]
    totalCount: int


class TakeOver(OneAgent):
    """Body of takeOver: accounts by name, as they were discovered."""

    userNames: Many[Text] = Field(min_length=1, max_length=1000)
    action: AnyAction


def _host_names(value: list[str]) -> list[str]:
    if not all(account_name(each) == each for each in value):
        raise unfit("names of accounts")
    return value


class GiveOrder(OfDomain):
    """Body of order. kind: sync, discover or rotate; userNames: whom to rotate, everybody unless given. waitSeconds:
    how long to wait for the outcome."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"domainId": 1, "instanceId": 7, "kind": "rotate", "waitSeconds": 20}]}
    )

    instanceId: Many[Id] = Field(min_length=1, max_length=1000)
    kind: TriggerKind
    userNames: Annotated[Many[Text], BeforeValidator(lambda value: value or [])] = Field(
        default_factory=list, max_length=1000
    )
    waitSeconds: Annotated[Whole, Between(0, 60)] = 0

    @model_validator(mode="after")
    def _fits(self) -> "GiveOrder":
        _host_names(self.userNames)
        if self.userNames and self.kind is not TriggerKind.ROTATE:
            raise unfit("userNames go with the kind rotate", "userNames")
        return self


class OrdersGiven(Model):
    """Answer of order."""

    code: int = 200
    status: str = "Success"
    message: str
    orders: list[OrderEntry]


class SettingsFields(Body):
    """How agents behave; null takes back what was said, and what is not said stays. rotateDays: passwords are rotated
    so often, 0 never."""

    putBackPrivileges: Flag | None = None
    removeUnknownKeys: Flag | None = None
    removal: Removal | None = None
    removeHomes: Flag | None = None
    sudoWithoutPassword: Flag | None = None
    endSessions: Flag | None = None
    privilegeSeconds: Annotated[Whole, Between(10, 604_800)] | None = None
    discoverSeconds: Annotated[Whole, Between(60, 2_592_000)] | None = None
    rotateDays: Annotated[Whole, Between(0, 3650)] | None = None

    def said(self) -> dict[str, JSON]:
        """What is said, by the names that the store and the agents have for it."""
        return {
            _STORED.get(name, name): getattr(self, name)
            for name in self.model_fields_set & SettingsFields.model_fields.keys()
        }


_STORED = {"privilegeSeconds": "privilegeS", "discoverSeconds": "discoverS"}
_SHOWN = {stored: shown for shown, stored in _STORED.items()}


class SetSettings(SettingsFields, OfDomain):
    """Body of setSettings. Without instanceId they are the domain's, which hold where a machine has none of its own."""

    instanceId: Id = 0


class GetSettings(OfDomain):
    """Body of getSettings."""

    instanceId: Id = 0


class SettingsShown(Model):
    """Answer of getSettings: everything, with the defaults."""

    putBackPrivileges: bool
    removeUnknownKeys: bool
    removal: str
    removeHomes: bool
    sudoWithoutPassword: bool
    endSessions: bool
    privilegeSeconds: int
    discoverSeconds: int
    rotateDays: int

    @classmethod
    def of(cls, said: dict[str, JSON]) -> "SettingsShown":
        """What holds where this was said."""
        told = decode(state.Settings, said)
        days = said.get("rotateDays")
        return cls(
            putBackPrivileges=told.put_back_privileges,
            removeUnknownKeys=told.remove_unknown_keys,
            removal=told.removal,
            removeHomes=told.remove_homes,
            sudoWithoutPassword=told.sudo_without_password,
            endSessions=told.end_sessions,
            privilegeSeconds=told.privilege_s,
            discoverSeconds=told.discover_s,
            rotateDays=days if isinstance(days, int) else 0,
        )


class RotateStateKey(OfDomain):
    """Body of rotateStateKey."""


class GetPassword(OneAgent):
    """Body of getPassword."""

    userName: Text


class PasswordEntry(Model):
    """A password of an account. state: `set` (by the service), `current`, `candidate` (it may be in force) or
    `former`."""

    password: str
    state: str
    since: str


class PasswordList(Model):
    """Answer of getPassword: the most likely first."""

    passwords: list[PasswordEntry]

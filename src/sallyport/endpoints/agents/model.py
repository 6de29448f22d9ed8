"""The bodies of the operations: what admins ask, and what agents send."""

import json
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, model_validator

from sallyport.base.agentwire import state
from sallyport.base.agentwire.report import Poll, PrivilegeStatus, Report, Rotation, rotation
from sallyport.base.agentwire.state import Removal, TriggerKind
from sallyport.base.command import JSON
from sallyport.base.errors import FieldError, Invalid, WireError
from sallyport.base.validation import unfit
from sallyport.base.wire import decode
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.agents.machines import Machine, Registered
from sallyport.endpoints.agents.presence import HEARTBEAT_S
from sallyport.endpoints.bodies import AnyAction
from sallyport.endpoints.instances.model import AddressText
from sallyport.web.paging import Paged
from sallyport.web.scope import Body, Flag, Id, Many, OfDomain, ScopedIfGiven, Text, Whole

MessageT = TypeVar("MessageT")
_SCOPE = ("orgId", "tenantId")
_INDEX = re.compile(r"\[\d+\]")


class AddMachine(ScopedIfGiven):
    """Body of add-machine, in either shape. machineId: what tells the machine from others, whatever it is called."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"machineKey": "spk_...", "osId": 1, "publicIpAddress": "203.0.113.7", "privateIpAddress": "10.0.0.7"},
                {"domainId": 1, "instanceName": "web-1", "osId": 1, "publicIp": "", "privateIp": "10.0.0.7"},
            ]
        }
    )

    domainId: Whole | None = Field(default=None, validation_alias=AliasChoices("domainId", "domain_id"))
    machineKey: Text = ""
    instanceName: Text = Field(default="", validation_alias=AliasChoices("instanceName", "instance_name"))
    osId: Id = Field(default=0, validation_alias=AliasChoices("osId", "os_id"))
    publicIp: AddressText = Field(default="", validation_alias=AliasChoices("publicIpAddress", "publicIp", "public_ip"))
    privateIp: AddressText = Field(
        default="", validation_alias=AliasChoices("privateIpAddress", "privateIp", "private_ip")
    )
    hostName: Text = ""
    machineId: Text = ""
    agentVersion: Text = ""

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)

    def claimed_key(self) -> str | None:
        return self.machineKey or None

    @property
    def machine(self) -> Machine:
        """What is told of the machine."""
        return Machine(
            self.machineId,
            self.instanceName,
            self.osId,
            self.publicIp,
            self.privateIp,
            self.hostName,
            self.agentVersion,
        )


class MachineAdded(BaseModel):
    """Answer of add-machine. stateKey: the Ed25519 key, in base64, by which an agent checks its states; empty for who
    is no agent."""

    instanceId: str
    code: str = "200"
    message: str
    domainId: int
    stateKey: str
    heartbeatSeconds: int = HEARTBEAT_S

    @classmethod
    def of(cls, made: Registered) -> "MachineAdded":
        """The answer for a machine."""
        return cls(
            instanceId=str(made.instance_id),
            message="machine added" if made.is_new else "machine known",
            domainId=made.domain_id,
            stateKey=b64encode(made.state_key).decode(),
        )


class ListAgents(OfDomain, Paged):
    """Body of listAgents. status: Active or Inactive; empty for all."""

    status: Text = ""


class AgentEntry(BaseModel):
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


class AgentList(BaseModel):
    """Answer of listAgents."""

    agents: list[AgentEntry]
    totalCount: int


class OneAgent(OfDomain):
    """Body that names one instance."""

    instanceId: Id


class OrderEntry(BaseModel):
    """An order. outcome: waiting, done or failed; error: why it failed."""

    orderId: int
    instanceId: int
    kind: str
    userNames: list[str]
    ordered: str
    outcome: str
    ended: str
    error: str


class AgentStatus(BaseModel):
    """Answer of agentStatus. users: the accounts that should be there. unfit: users whose names no host takes. report:
    the newest."""

    agent: AgentEntry
    waits: bool
    users: list[str]
    unfit: list[str]
    lastDiscovery: str
    lastPrivilegeStatus: str
    report: "ReportEntry | None"
    orders: list[OrderEntry]


class ListReports(OneAgent, Paged):
    """Body of listReports."""


class ReportEntry(BaseModel):
    """A report. told: actions, managed accounts, drift and versions, of long lists the beginnings."""

    reportId: str
    time: str
    version: int
    outcome: str
    told: dict[str, object]


class ReportList(BaseModel):
    """Answer of listReports."""

    reports: list[ReportEntry]
    totalCount: int


class ListDrift(OfDomain, Paged):
    """Body of listDrift. instanceId: of this one; lasting: only what is not over."""

    instanceId: Id | None = None
    lasting: Flag = True


class DriftEntry(BaseModel):
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


class DriftList(BaseModel):
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


class DiscoveredEntry(BaseModel):
    """An account or a group of a machine. userId: of the endpoint user of that name, or 0."""

    name: str
    userId: int
    found: str
    told: dict[str, object]


class DiscoveredList(BaseModel):
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
    waitSeconds: Annotated[Whole, Field(ge=0, le=60)] = 0

    @model_validator(mode="after")
    def _fits(self) -> "GiveOrder":
        _host_names(self.userNames)
        if self.userNames and self.kind is not TriggerKind.ROTATE:
            raise unfit("userNames go with the kind rotate")
        return self


class OrdersGiven(BaseModel):
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
    privilegeSeconds: Annotated[Whole, Field(ge=10, le=604_800)] | None = None
    discoverSeconds: Annotated[Whole, Field(ge=60, le=2_592_000)] | None = None
    rotateDays: Annotated[Whole, Field(ge=0, le=3650)] | None = None

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


class SettingsShown(BaseModel):
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


class GetPassword(OneAgent):
    """Body of getPassword."""

    userName: Text


class PasswordEntry(BaseModel):
    """A password of an account. state: `set` (by the service), `current`, `candidate` (it may be in force) or
    `former`."""

    password: str
    state: str
    since: str


class PasswordList(BaseModel):
    """Answer of getPassword: the most likely first."""

    passwords: list[PasswordEntry]


# --- what agents send: base.agentwire's messages ------------------------------------------------------------------


class Told(ScopedIfGiven, ABC, Generic[MessageT]):
    """A message of base.agentwire, which its own reader checks."""

    said: SkipValidation[MessageT]

    @classmethod
    @abstractmethod
    def reader(cls, value: object) -> MessageT:
        """The message in a JSON value. WireError names the field, without the value."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        try:
            return {**{name: value.get(name) for name in _SCOPE}, "said": cls.reader(value)}
        except WireError as error:
            path, _, told = str(error).partition(": ")
            name = _INDEX.sub("", path).rpartition(".")[2]
            kind = "missing" if told == "missing" else "invalid"
            raise Invalid(f"{kind} {name}", (FieldError(path, told),)) from None


class PollBody(Told[Poll]):
    """Body of desiredState: agentwire.Poll."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": 0, "waitS": 50}]})

    @classmethod
    def reader(cls, value: object) -> Poll:
        return decode(Poll, value)


class ReportBody(Told[Report]):
    """Body of report: agentwire.Report."""

    @classmethod
    def reader(cls, value: object) -> Report:
        return decode(Report, value)


class PrivilegesBody(Told[PrivilegeStatus]):
    """Body of privilegeStatus: agentwire.PrivilegeStatus."""

    @classmethod
    def reader(cls, value: object) -> PrivilegeStatus:
        return decode(PrivilegeStatus, value)


class RotationBody(Told[Rotation]):
    """Body of rotation: agentwire.Rotation."""

    @classmethod
    def reader(cls, value: object) -> Rotation:
        return rotation(json.dumps(value).encode())

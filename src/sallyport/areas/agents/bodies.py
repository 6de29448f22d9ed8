"""The requests and answers of the operations with which admins manage agents."""

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from sallyport.agentwire import state
from sallyport.agentwire.state import Removal, TriggerKind
from sallyport.areas.agents.grants import account_name
from sallyport.areas.agents.repo import Agent, Order
from sallyport.areas.agents.reports_repo import StoredDrift
from sallyport.areas.users.bodies import AnyAction
from sallyport.areas.users.instances.bodies import InstanceId
from sallyport.base.model import Done, Model, answer_of, with_fields
from sallyport.base.validation import Between, unfit
from sallyport.base.wire import JSON, decode, mapping
from sallyport.web.bodies import Body, Flag, Id, Many, OfDomain, Paged, Text, TotalCount, Whole

_OPTIONAL_INSTANCE = "Id of the instance that the settings are for, or 0 for the settings of the whole domain."
_MOMENT = "ISO 8601 UTC"


class ListAgents(OfDomain, Paged):
    """Request body of the operation `listAgents`."""

    status: Text = Field(
        default="",
        description="Status of the agents to list, Active or Inactive. If it is empty, all agents are listed.",
    )


@answer_of(Agent)
class AgentEntry(Model):
    """An agent in the answer of `listAgents`."""


class AgentList(Model):
    """Response body of the operation `listAgents`."""

    agents: list[AgentEntry] = Field(description="Agents on this page, ordered by instance.")
    totalCount: TotalCount


class OneAgent(OfDomain):
    """A body that selects one instance."""

    instanceId: InstanceId


@answer_of(Order)
class OrderEntry(Model):
    """An order to an agent."""


class PrivilegedEntry(Model):
    """An account with root privileges."""

    name: str = Field(description="Name of the account.")
    via: list[str] = Field(default=[], description="Groups and sudo rules that give the privileges.")
    managed: bool = Field(default=False, description="Whether the agent manages the account.")
    wanted: bool = Field(default=False, description="Whether the desired state gives these privileges to the account.")


class PrivilegeEntry(Model):
    """The last privilege status of an agent."""

    time: str = Field(description=f"Time when the service received the privilege status, {_MOMENT}.")
    version: int = Field(description="Version of the desired state that the agent had applied.")
    privileged: list[PrivilegedEntry] = Field(description="Accounts with root privileges.")
    more: bool = Field(default=False, description="Whether the list of accounts was truncated because it is too long.")


class AgentStatus(Model):
    """Response body of the operation `agentStatus`."""

    agent: AgentEntry = Field(description="Agent of the instance.")
    waits: bool = Field(description="Whether the agent is waiting for a new desired state now (long polling).")
    users: list[str] = Field(description="Accounts in the desired state of the machine.")
    unfit: list[str] = Field(
        description="Users that have access but no account in the desired state, for example because hosts do not "
        "accept the name."
    )
    lastDiscovery: str = Field(
        description=f"Time of the last discovery of accounts, {_MOMENT}. Empty if there was none."
    )
    lastPrivilegeStatus: str = Field(
        description=f"Time of the last privilege status, {_MOMENT}. Empty if there was none."
    )
    privilegeStatus: PrivilegeEntry | None = Field(description="Last privilege status, or null if there was none.")
    report: "ReportEntry | None" = Field(description="Newest report, or null if there was none.")
    orders: list[OrderEntry] = Field(description="Newest orders, the newest first.")


class ListReports(OneAgent, Paged):
    """Request body of the operation `listReports`."""


class ReportEntry(Model):
    """A report of an agent."""

    reportId: str = Field(description="Id of the report, chosen by the agent.")
    time: str = Field(description=f"Time when the service received the report, {_MOMENT}.")
    version: int = Field(description="Version of the desired state that the agent had applied.")
    outcome: str = Field(description="ok, or errors if at least one action of the agent failed.")
    told: dict[str, object] = Field(
        description="Versions of the agent and the system, actions, managed accounts, drift. Long lists are truncated."
    )


class ReportList(Model):
    """Response body of the operation `listReports`."""

    reports: list[ReportEntry] = Field(
        description="Reports on this page, the newest first. The service keeps the last 20 reports of each agent."
    )
    totalCount: TotalCount


class ListDrift(OfDomain, Paged):
    """Request body of the operation `listDrift`."""

    instanceId: Id | None = Field(
        default=None,
        description="Id of an instance, to list only its drift. If it is absent, the drift on all instances of the "
        "domain is listed.",
    )
    lasting: Flag = Field(
        default=True, description="true to list only drift that has not ended, false to list all drift."
    )


@answer_of(StoredDrift)
class DriftEntry(Model):
    """A drift entry: a change that was made on a machine, but not by the machine's agent."""


class DriftList(Model):
    """Response body of the operation `listDrift`."""

    drift: list[DriftEntry] = Field(description="Drift entries on this page, the newest first.")
    totalCount: TotalCount


def _kind(value: object) -> object:
    if str(value).strip().lower() not in ("account", "group"):
        raise unfit("must be account or group")
    return str(value).strip().lower()


class ListDiscovered(OneAgent, Paged):
    """Request body of the operation `listDiscovered`."""

    kind: Annotated[str, BeforeValidator(_kind)] = Field(
        default="account", description="account or group.", json_schema_extra={"enum": ["account", "group"]}
    )


class DiscoveredEntry(Model):
    """An account or a group of a machine."""

    name: str = Field(description="Name of the account or group.")
    userId: int = Field(description="Id of the endpoint user with the same name, or 0 if there is none.")
    found: str = Field(description=f"Time of the discovery, {_MOMENT}.")
    told: dict[str, object] = Field(description="Fields of the account or group, such as uid, shell, groups, members.")


class DiscoveredList(Model):
    """Response body of the operation `listDiscovered`."""

    discovered: list[DiscoveredEntry] = Field(description="Accounts or groups on this page, ordered by name.")
    totalCount: TotalCount


class TakeOver(OneAgent):
    """Request body of the operation `takeOver`."""

    userNames: Many[Text] = Field(min_length=1, max_length=1000, description="Names of discovered accounts.")
    action: AnyAction = Field(
        description="add: the agent begins to manage the accounts; remove: the agent stops managing them."
    )


def _host_names(value: list[str]) -> list[str]:
    if not all(account_name(each) == each for each in value):
        raise unfit("must be names of accounts on hosts, such as ann or web_2")
    return value


MAX_WAIT_S = 60
"""Longest time that a request for an order waits for the outcome."""


class GiveOrder(OfDomain):
    """Request body of the operation `order`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"domainId": 1, "instanceId": 7, "kind": "rotate", "waitSeconds": 20}]}
    )

    instanceId: Many[Id] = Field(
        min_length=1, max_length=1000, description="Ids of the instances whose agents get the order."
    )
    kind: TriggerKind = Field(
        description="sync: apply the desired state again; discover: list the accounts; rotate: change passwords."
    )
    userNames: Annotated[Many[Text], BeforeValidator(lambda value: value or []), AfterValidator(_host_names)] = Field(
        default_factory=list,
        max_length=1000,
        description="Accounts whose passwords are rotated. If it is empty, all accounts with a password are rotated.",
    )
    waitSeconds: Annotated[Whole, Between(0, MAX_WAIT_S)] = Field(
        default=0, description="Longest time that the request waits for the outcome, in seconds."
    )

    @model_validator(mode="after")
    def _names_only_to_rotate(self) -> "GiveOrder":
        if self.userNames and self.kind is not TriggerKind.ROTATE:
            raise unfit("userNames can be given only with the kind rotate", "userNames")
        return self


class OrdersGiven(Done):
    """Response body of the operation `order`."""

    orders: list[OrderEntry] = Field(description="Orders, one for each instance.")


class SettingsFields(Body):
    """Changes of the settings of agents. An absent field keeps its value. A field that is null is reset to the
    default."""

    putBackPrivileges: Flag | None = Field(
        default=None, description="Whether the agent removes privileges that an account should not have."
    )
    removeUnknownKeys: Flag | None = Field(
        default=None,
        description="Whether the agent removes SSH keys that are not in the desired state. This concerns only managed "
        "accounts.",
    )
    removal: Removal | None = Field(
        default=None,
        description="Action on an account that the agent has created and that is no longer in the desired state: "
        "delete or lock.",
    )
    removeHomes: Flag | None = Field(
        default=None,
        description="Whether the home directory is deleted with the account; otherwise root becomes its owner.",
    )
    sudoWithoutPassword: Flag | None = Field(
        default=None, description="Whether privileged users can use sudo without a password."
    )
    endSessions: Flag | None = Field(
        default=None, description="Whether the agent ends the sessions of accounts that it locks or deletes."
    )
    privilegeSeconds: Annotated[Whole, Between(10, 604_800)] | None = Field(
        default=None, description="Seconds between two privilege statuses that the agent sends."
    )
    discoverSeconds: Annotated[Whole, Between(60, 2_592_000)] | None = Field(
        default=None, description="Seconds between two discoveries of the accounts on a machine."
    )
    rotateDays: Annotated[Whole, Between(0, 3650)] | None = Field(
        default=None, description="Days between two rotations of a password, or 0 for no rotation."
    )

    def given(self) -> dict[str, JSON]:
        """Return only the fields that the request contains. The keys are the field names that the store and
        agentwire use."""
        return {
            STORED.get(name, name): getattr(self, name)
            for name in self.model_fields_set & SettingsFields.model_fields.keys()
        }


STORED = {"privilegeSeconds": "privilegeS", "discoverSeconds": "discoverS"}
"""The names of fields in the store and in agentwire, where they differ."""


class SetSettings(SettingsFields, OfDomain):
    """Request body of the operation `setSettings`. A setting of one machine overrides the same setting of the
    domain."""

    instanceId: Id = Field(default=0, description=_OPTIONAL_INSTANCE)


class GetSettings(OfDomain):
    """Request body of the operation `getSettings`."""

    instanceId: Id = Field(default=0, description=_OPTIONAL_INSTANCE)


_TYPES = {"removal": str, "privilegeSeconds": int, "discoverSeconds": int, "rotateDays": int}
"""The types of the settings in an answer that are no flags."""


@with_fields(
    {
        name: (_TYPES.get(name, bool), Field(description=field.description))
        for name, field in SettingsFields.model_fields.items()
    }
)
class SettingsShown(Model):
    """Response body of the operation `getSettings`: all settings. A setting that was never changed has its default."""

    @classmethod
    def of(cls, fields: dict[str, JSON]) -> Self:
        """Return the settings in `fields`, and the defaults of all other settings."""
        days = fields.get("rotateDays")
        values = {"rotateDays": days if isinstance(days, int) else 0, **mapping(decode(state.Settings, fields))}
        return cls.model_validate({name: values[STORED.get(name, name)] for name in SettingsFields.model_fields})


class RotateStateKey(OfDomain):
    """Request body of the operation `rotateStateKey`."""


class GetPassword(OneAgent):
    """Request body of the operation `getPassword`."""

    userName: Text = Field(description="Name of the account, or of its endpoint user.")


class PasswordEntry(Model):
    """A password of an account."""

    password: str = Field(description="The password, or ******** if the caller is an auditor.")
    state: str = Field(
        description="set: set by the service; current: confirmed by the agent; candidate: may be valid; former: "
        "replaced by a newer password."
    )
    since: str = Field(description=f"Time when the password was set or generated, {_MOMENT}.")


class PasswordList(Model):
    """Response body of the operation `getPassword`."""

    passwords: list[PasswordEntry] = Field(
        description="Passwords that may be valid, the most likely first, and then former passwords."
    )

"""The SQL of agents, their settings and take-overs, and of orders to agents."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from sallyport.agentwire.state import Settings, Trigger, TriggerKind
from sallyport.areas.users.membership import INSTANCES, NOT_FOUND
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, decode
from sallyport.store.inserts import insert_row, put_row
from sallyport.store.model import ListQuery, Tx, Value, columns_of

MAX_OPEN: Final = 50
"""Maximum number of open orders of a machine. The limit exists because the desired state contains all open orders."""
KEPT_ORDERS: Final = 50
"""Number of ended orders that are stored for a machine."""
WHOLE_DOMAIN: Final = 0
"""The instance_id of the row with a domain's settings. Settings of one machine override the settings of the domain."""
_AGENT: Final = (
    "a.instance_id, a.domain_id, i.name, i.host_name, i.status, a.machine, a.agent_version, a.enrolled_at, a.seen_at, "
    "a.version, a.digest, a.changed_at, a.applied_version, a.applied_at, a.discovered_at, a.privileges_at"
)
_SELECT: Final = f"select {_AGENT} from agents a join endpoint_instances i on i.id = a.instance_id"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and its instance. machine: the stable id that the machine has reported, or empty. Times are in
    microseconds."""

    instance_id: Annotated[int, Wire("Id of the instance.", "instanceId")]
    domain_id: int
    name: Annotated[str, Wire("Name of the instance.", "instanceName")]
    host_name: Annotated[str, Wire("Host name that the machine reported; empty if unknown.", "hostName")]
    status: Annotated[str, Wire("Active while the agent sends messages, else Inactive.")]
    machine: str
    agent_version: Annotated[str, Wire("Version of the agent's program.", "agentVersion", after="enrolled")]
    enrolled_at: Annotated[int, Wire("Time of the registration, ISO 8601 UTC.", "enrolled", iso, after="lastSeen")]
    seen_at: int
    version: Annotated[int, Wire("Version of the machine's desired state.", "wantedVersion", after="agentVersion")]
    digest: str
    changed_at: int
    applied_version: Annotated[
        int, Wire("Version of the desired state in the agent's last report.", "appliedVersion", after="wantedVersion")
    ]
    applied_at: int | None
    discovered_at: int | None
    privileges_at: int | None

    @Wire("Time of the agent's last message, ISO 8601 UTC.", "lastSeen", iso, after="status")
    def last_seen(self, seen_at: Callable[[int, int], int]) -> int:
        """Return the time of the last message. seen_at: see `Presence.seen_at`."""
        return seen_at(self.instance_id, self.seen_at)

    @property
    @Wire("Whether the agent's last report is about the present version of the desired state.", "upToDate")
    def is_up_to_date(self) -> bool:
        """Whether the agent has applied the desired state."""
        return 0 < self.version == self.applied_version


def get(tx: Tx, instance_id: int) -> Agent | None:
    """Return the agent of an instance, or None if the instance has no agent."""
    return tx.one(Agent, f"{_SELECT} where a.instance_id = :i", i=instance_id)


def found(tx: Tx, instance_id: int, domain_id: int | None = None) -> Agent:
    """Return the agent of an instance. Raises NotFound if the instance has no agent.

    domain_id: the domain to which the instance must belong, or None for any domain.
    """
    agent = get(tx, instance_id)
    if agent is None or domain_id not in (None, agent.domain_id):
        raise NotFound(NOT_FOUND[INSTANCES])
    return agent


def of_machine(tx: Tx, domain_id: int, machine: str) -> Agent | None:
    """Return the agent that has this machine id in a domain, or None."""
    sql = f"{_SELECT} where a.domain_id = :d and a.machine = :m order by a.instance_id limit 1"
    return tx.one(Agent, sql, d=domain_id, m=machine)


def page(tx: Tx, stretch: ListQuery, status: str = "") -> tuple[list[Agent], int]:
    """Return one page of a domain's agents, ordered by instance, and the total number of agents. status: the status of
    the agents to return, or empty for all agents."""
    where = "where a.domain_id = :d" + (" and i.status = :status" if status else "")
    parameters: dict[str, Value] = {"d": stretch.domain_id, **({"status": status} if status else {})}
    rows = tx.all(
        Agent,
        f"{_SELECT} {where} order by a.instance_id limit :limit offset :offset",
        limit=stretch.limit,
        offset=stretch.offset,
        **parameters,
    )
    count = f"select count(*) from agents a join endpoint_instances i on i.id = a.instance_id {where}"
    return rows, tx.value(int, count, **parameters) or 0


def add(tx: Tx, domain_id: int, instance_id: int, machine: str, agent_version: str, at: int) -> None:
    """Add the agent of an instance. If the instance has an agent already, update its machine id and version."""
    put_row(
        tx,
        "agents",
        "instance_id",
        kept="domain_id, enrolled_at, seen_at",
        instance_id=instance_id,
        domain_id=domain_id,
        machine=machine,
        agent_version=agent_version,
        enrolled_at=at,
        seen_at=at,
    )


def set_version(tx: Tx, instance_id: int, version: int, digest: str, at: int) -> None:
    """Store the version and the digest of a new desired state."""
    sql = "update agents set version = :v, digest = :digest, changed_at = :at where instance_id = :i"
    tx.execute(sql, v=version, digest=digest, at=at, i=instance_id)


def applied(tx: Tx, instance_id: int, version: int, at: int) -> None:
    """Store the version of the desired state that an agent has applied, according to its report."""
    sql = "update agents set applied_version = :v, applied_at = :at where instance_id = :i"
    tx.execute(sql, v=version, at=at, i=instance_id)


def mark_discovered(tx: Tx, instance_id: int, at: int) -> None:
    """Store the time at which an agent last discovered the accounts of its machine."""
    tx.execute("update agents set discovered_at = :at where instance_id = :i", at=at, i=instance_id)


def store_privileges(tx: Tx, instance_id: int, status: str, at: int) -> None:
    """Store the last privilege status of an agent. status: the privilege status as JSON."""
    sql = "update agents set privileges = :status, privileges_at = :at where instance_id = :i"
    tx.execute(sql, status=status, at=at, i=instance_id)


def privileges(tx: Tx, instance_id: int) -> str:
    """Return the last privilege status of an agent as JSON, or `{}` if the agent has sent none."""
    return tx.value(str, "select privileges from agents where instance_id = :i", i=instance_id) or "{}"


def set_status(tx: Tx, instance_ids: Iterable[int], status: str, at: int) -> None:
    """Store the status of instances."""
    sql = "update endpoint_instances set status = :status, updated_at = :at where id = :i and status <> :status"
    for each in instance_ids:
        tx.execute(sql, status=status, at=at, i=each)


def set_silent(tx: Tx, agents: Iterable[tuple[int, int]], status: str, at: int) -> None:
    """Store a status for instances whose agents are silent. Skip each instance whose agent has sent a message in the
    meantime.

    agents: pairs of an instance id, and the time of the agent's last message that the caller has read from the store.
    """
    sql = (
        "update endpoint_instances set status = :status, updated_at = :at where id = :i and exists "
        "(select 1 from agents where instance_id = :i and seen_at = :seen)"
    )
    for each, seen in agents:
        tx.execute(sql, status=status, at=at, i=each, seen=seen)


def store_seen(tx: Tx, seen: Iterable[tuple[int, int]]) -> None:
    """Store the time of the last message of each agent. seen: pairs of an instance id and a time in microseconds."""
    for instance_id, at in seen:
        tx.execute("update agents set seen_at = :at where instance_id = :i", at=at, i=instance_id)


def with_status(tx: Tx, status: str) -> list[tuple[int, int]]:
    """Return the id of each instance that has this status and an agent, and the time of the agent's last message."""
    sql = (
        "select a.instance_id, a.seen_at from agents a join endpoint_instances i on i.id = a.instance_id "
        "where i.status = :status"
    )
    return [(int(instance or 0), int(seen or 0)) for instance, seen in tx.rows(sql, status=status)]


def own_settings(tx: Tx, domain_id: int, instance_id: int = WHOLE_DOMAIN) -> dict[str, JSON]:
    """Return the settings that an admin has set, without defaults. If instance_id is WHOLE_DOMAIN, these are the
    settings of the domain, otherwise only those of the machine. The field names are those of agentwire."""
    sql = "select fields from agent_settings where domain_id = :d and instance_id = :i"
    found = json.loads(tx.value(str, sql, d=domain_id, i=instance_id) or "{}")
    return found if isinstance(found, dict) else {}


def settings_of_domain(tx: Tx, domain_id: int) -> list[tuple[int, str, dict[str, JSON]]]:
    """Return the settings that an admin has set in a domain: the instance and its name, or WHOLE_DOMAIN and an empty
    name, and the settings."""
    sql = (
        "select s.instance_id, coalesce(i.name, ''), s.fields from agent_settings s left join endpoint_instances i "
        "on i.id = s.instance_id where s.domain_id = :d order by s.instance_id"
    )
    return [(int(str(number)), str(name), json.loads(str(text))) for number, name, text in tx.rows(sql, d=domain_id)]


def store_settings(tx: Tx, domain_id: int, instance_id: int, fields: Mapping[str, JSON]) -> None:
    """Replace the stored settings of a domain or a machine. Delete the row if `fields` is empty."""
    tx.execute("delete from agent_settings where domain_id = :d and instance_id = :i", d=domain_id, i=instance_id)
    if fields:
        text = json.dumps(dict(fields), sort_keys=True)
        tx.insert("agent_settings", ("domain_id", "instance_id", "fields"), [(domain_id, instance_id, text)])


def merged_settings(tx: Tx, domain_id: int, instance_id: int) -> dict[str, JSON]:
    """Return the settings of a domain, overridden by the settings of a machine. If instance_id is 0, return only the
    settings of the domain."""
    own = own_settings(tx, domain_id, instance_id) if instance_id else {}
    return {**own_settings(tx, domain_id), **own}


def settings_of(tx: Tx, instance_id: int) -> Settings:
    """Return all settings for the agent of a machine. A setting of the machine overrides the same setting of the
    domain, which overrides the default."""
    domain_id = tx.value(int, "select domain_id from endpoint_instances where id = :id", id=instance_id)
    return decode(Settings, merged_settings(tx, domain_id or 0, instance_id))


def takeovers(tx: Tx, instance_id: int) -> list[str]:
    """Return the names of the accounts that a machine's agent may take over, in alphabetical order."""
    sql = "select account from agent_takeovers where instance_id = :i order by account"
    return [str(account) for (account,) in tx.rows(sql, i=instance_id)]


def take_over(tx: Tx, agent: Agent, account: str, at: int) -> None:
    """Let an agent manage an account."""
    sql = (
        "insert into agent_takeovers (domain_id, instance_id, account, at) values (:d, :i, :account, :at) "
        "on conflict do nothing"
    )
    tx.execute(sql, d=agent.domain_id, i=agent.instance_id, account=account, at=at)


def give_back(tx: Tx, agent: Agent, account: str) -> None:
    """Stop an agent from managing an account."""
    sql = "delete from agent_takeovers where instance_id = :i and account = :account"
    tx.execute(sql, i=agent.instance_id, account=account)


@dataclass(frozen=True, slots=True)
class Order:
    """An order to an agent. Times are in microseconds."""

    id: Annotated[int, Wire("Id of the order.", "orderId")]
    instance_id: Annotated[int, Wire("Id of the instance.", "instanceId")]
    kind: Annotated[TriggerKind, Wire("Kind of the order: sync, discover or rotate.", kind=str)]
    accounts: Annotated[tuple[str, ...], Wire("Accounts whose passwords are rotated.", "userNames", kind=list[str])]
    ordered_at: Annotated[int, Wire("Time of the order, ISO 8601 UTC.", "ordered", iso)]
    ended_at: Annotated[
        int | None,
        Wire(
            "Time at which the order was done or failed, ISO 8601 UTC. Empty while the order is waiting.",
            "ended",
            iso,
            empty=True,
            after="outcome",
        ),
    ]
    error: Annotated[str, Wire("Reason of the failure. Empty if the order has not failed.", after="ended")]

    @property
    @Wire("Outcome of the order: waiting, done or failed.", after="ordered")
    def outcome(self) -> str:
        """The outcome of the order: `waiting`, `done` or `failed`."""
        if self.ended_at is None:
            return "waiting"
        return "failed" if self.error else "done"


_ORDER: Final = ", ".join(columns_of(Order))


def open_triggers(tx: Tx, instance_id: int) -> tuple[Trigger, ...]:
    """Return the open orders of a machine in the form in which its desired state contains them."""
    return tuple(Trigger(each.id, each.kind, each.accounts) for each in open_orders(tx, instance_id))


def open_orders(tx: Tx, instance_id: int) -> list[Order]:
    """Return the open orders of a machine, ordered by id."""
    sql = f"select {_ORDER} from agent_orders where instance_id = :i and ended_at is null order by id limit :most"
    return tx.all(_order, sql, i=instance_id, most=MAX_OPEN)


def order(tx: Tx, order_id: int) -> Order | None:
    """Return an order, or None if it does not exist."""
    return tx.one(_order, f"select {_ORDER} from agent_orders where id = :id", id=order_id)


def newest_orders(tx: Tx, instance_id: int, limit: int) -> list[Order]:
    """Return the newest orders of a machine, at most `limit`, the newest first."""
    sql = f"select {_ORDER} from agent_orders where instance_id = :i order by id desc limit :limit"
    return tx.all(_order, sql, i=instance_id, limit=limit)


def add_order(tx: Tx, instance_id: int, kind: TriggerKind, accounts: Sequence[str], at: int) -> int:
    """Add an order, and return its id. If an order of this kind with these accounts is open already, return the id of
    the open order. Return 0 if too many orders are open."""
    waiting, text = open_orders(tx, instance_id), json.dumps(sorted(set(accounts)))
    for each in waiting:
        if each.kind is kind and json.dumps(list(each.accounts)) == text:
            return each.id
    if len(waiting) >= MAX_OPEN:
        return 0
    return insert_row(tx, "agent_orders", instance_id=instance_id, kind=kind.value, accounts=text, ordered_at=at)


def end_order(tx: Tx, instance_id: int, order_id: int, error: str, at: int) -> bool:
    """End an order, and delete the oldest ended orders of the machine. Return whether the order was open.

    error: the reason of the failure, or empty if the order is done.
    """
    which = "id = :id and instance_id = :i and ended_at is null"
    sql = f"update agent_orders set ended_at = :at, error = :error where {which}"
    ended = tx.execute(sql, at=at, error=error, id=order_id, i=instance_id) > 0
    if ended:
        tx.execute(
            "delete from agent_orders where instance_id = :i and ended_at is not null and id <= (select id from "
            "agent_orders where instance_id = :i and ended_at is not null order by id desc limit 1 offset :kept)",
            i=instance_id,
            kept=KEPT_ORDERS,
        )
    return ended


def overdue_orders(tx: Tx, before: int) -> list[Order]:
    """Return the open orders that were given before a time."""
    return tx.all(_order, f"select {_ORDER} from agent_orders where ended_at is null and ordered_at < :t", t=before)


def _order(*, kind: str, accounts: str, **columns: int) -> Order:
    return Order(kind=TriggerKind(kind), accounts=tuple(json.loads(accounts)), **columns)  # type: ignore[arg-type]

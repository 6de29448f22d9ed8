"""The SQL of agents: registration, versions of states, who is heard of."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import NotFound
from sallyport.endpoints.membership import INSTANCES, NOT_FOUND
from sallyport.store.model import Tx, Value
from sallyport.store.search import Stretch

_COLUMNS: Final = (
    "a.instance_id, a.domain_id, i.name, i.host_name, i.status, a.machine, a.agent_version, a.enrolled_at, a.seen_at, "
    "a.version, a.digest, a.changed_at, a.applied_version, a.applied_at, a.discovered_at, a.privileges_at"
)
_SELECT: Final = f"select {_COLUMNS} from agents a join endpoint_instances i on i.id = a.instance_id"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and its instance. machine: what tells the machine from others; empty where it did not say. version: of
    the state that is wanted; applied_version: of the one that it has reported on last. Times in microseconds."""

    instance_id: int
    domain_id: int
    name: str
    host_name: str
    status: str
    machine: str
    agent_version: str
    enrolled_at: int
    seen_at: int
    version: int
    digest: str
    changed_at: int
    applied_version: int
    applied_at: int | None
    discovered_at: int | None
    privileges_at: int | None


def get(tx: Tx, instance_id: int) -> Agent | None:
    """The agent of an instance, or None."""
    return tx.one(Agent, f"{_SELECT} where a.instance_id = :i", i=instance_id)


def found(tx: Tx, instance_id: int, domain_id: int | None = None) -> Agent:
    """The agent of an instance, of any domain or of this one. NotFound."""
    agent = get(tx, instance_id)
    if agent is None or domain_id not in (None, agent.domain_id):
        raise NotFound(NOT_FOUND[INSTANCES])
    return agent


def of_machine(tx: Tx, domain_id: int, machine: str) -> Agent | None:
    """The agent of a domain's machine, or None."""
    sql = f"{_SELECT} where a.domain_id = :d and a.machine = :m order by a.instance_id limit 1"
    return tx.one(Agent, sql, d=domain_id, m=machine)


def page(tx: Tx, stretch: Stretch, status: str = "") -> tuple[list[Agent], int]:
    """One page of a domain's agents, ordered by instance, and how many there are. status: only of that one."""
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
    """An instance has an agent; one that it has already is told the machine again."""
    tx.execute(
        "insert into agents (instance_id, domain_id, machine, agent_version, enrolled_at, seen_at) "
        "values (:i, :d, :m, :version, :at, :at) on conflict (instance_id) do update set machine = excluded.machine, "
        "agent_version = excluded.agent_version",
        i=instance_id,
        d=domain_id,
        m=machine,
        version=agent_version,
        at=at,
    )


def set_version(tx: Tx, instance_id: int, version: int, digest: str, at: int) -> None:
    """What is wanted of a machine is another thing now."""
    sql = "update agents set version = :v, digest = :digest, changed_at = :at where instance_id = :i"
    tx.execute(sql, v=version, digest=digest, at=at, i=instance_id)


def applied(tx: Tx, instance_id: int, version: int, at: int) -> None:
    """An agent has reported on a state."""
    sql = "update agents set applied_version = :v, applied_at = :at where instance_id = :i"
    tx.execute(sql, v=version, at=at, i=instance_id)


def mark_discovered(tx: Tx, instance_id: int, at: int) -> None:
    """Store the time of an agent's last discovery."""
    tx.execute("update agents set discovered_at = :at where instance_id = :i", at=at, i=instance_id)


def keep_privileges(tx: Tx, instance_id: int, told: str, at: int) -> None:
    """Keep the last privilege status of an agent. told: JSON."""
    sql = "update agents set privileges = :told, privileges_at = :at where instance_id = :i"
    tx.execute(sql, told=told, at=at, i=instance_id)


def privileges(tx: Tx, instance_id: int) -> str:
    """Return the last privilege status of an agent as JSON; an empty object before the first one."""
    return tx.value(str, "select privileges from agents where instance_id = :i", i=instance_id) or "{}"


def set_status(tx: Tx, instance_ids: Iterable[int], status: str, at: int) -> None:
    """Whether instances are heard of."""
    sql = "update endpoint_instances set status = :status, updated_at = :at where id = :i and status <> :status"
    for each in instance_ids:
        tx.execute(sql, status=status, at=at, i=each)


def keep_seen(tx: Tx, seen: Iterable[tuple[int, int]]) -> None:
    """When instances were heard of: (instance, microseconds)."""
    for instance_id, at in seen:
        tx.execute("update agents set seen_at = :at where instance_id = :i", at=at, i=instance_id)


def heard_of(tx: Tx, status: str) -> list[tuple[int, int]]:
    """The instances of that status which have an agent, and when it was heard."""
    sql = (
        "select a.instance_id, a.seen_at from agents a join endpoint_instances i on i.id = a.instance_id "
        "where i.status = :status"
    )
    return [(int(instance or 0), int(seen or 0)) for instance, seen in tx.rows(sql, status=status)]

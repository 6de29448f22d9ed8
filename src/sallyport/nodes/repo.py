"""The SQL for nodes, the lease, notices, and the marks of master keys. All times come from the clock of the database
(`now_us`)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.nodes.node import DEAD_US, LEASE_US, Node
from sallyport.store.foreign import NOTICES
from sallyport.store.model import Tx

KEEP_US: Final = 600 * SECOND
"""Time after which a notice is deleted, in microseconds. Counts that must last longer are stored elsewhere."""

_LEASE: Final = "work"
_COLUMNS: Final = (
    "n.id, n.name, n.session, n.installation, n.version, n.key_version, n.address, n.started_at, n.seen_at, "
    "now_us() - n.seen_at as silent_us, l.node_id is not null as leads"
)
_FROM: Final = f"from nodes n left join leases l on l.name = '{_LEASE}' and l.node_id = n.id and l.until > now_us()"


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease of the periodic work. node_id: the node that holds the lease. fence: the fencing number, which grows
    when another node takes the lease."""

    node_id: int
    fence: int


def named(tx: Tx, name: str) -> Node | None:
    """Return the node with this name, or None. The row of the node is locked until the transaction ends, so that no
    other process can join under this name."""
    return tx.one(_node, f"select {_COLUMNS} {_FROM} where n.name = :name for update of n", name=name)


def everyone(tx: Tx) -> list[Node]:
    """Return all nodes, ordered by name."""
    return tx.all(_node, f"select {_COLUMNS} {_FROM} order by n.name")


def _node(*, leads: int, **columns: object) -> Node:
    return Node(leads=bool(leads), **columns)  # type: ignore[arg-type]


def join(tx: Tx, name: str, session: str, installation: str, version: str, schema: str, key_version: int) -> int:
    """Write the row of a node that starts, and return the node's id.

    schema: the last step of the schema that the node knows. key_version: the version of the node's newest master key.
    """
    found = tx.value(
        int,
        "insert into nodes (name, session, installation, version, schema, key_version, address, started_at, seen_at) "
        "values (:name, :session, :installation, :version, :schema, :key_version, '', now_us(), now_us()) "
        "on conflict (name) do update set "
        "session = excluded.session, installation = excluded.installation, version = excluded.version, "
        "schema = excluded.schema, key_version = excluded.key_version, "
        "address = excluded.address, started_at = excluded.started_at, seen_at = excluded.seen_at returning id",
        name=name,
        session=session,
        installation=installation,
        version=version,
        schema=schema,
        key_version=key_version,
    )
    assert found is not None  # noqa: S101  the statement returns a row
    return found


def forget_former(tx: Tx, installation: str, names: Sequence[str]) -> None:
    """Delete the dead nodes of an installation. Nodes with the given names are kept. A dead node remains if its node
    was renamed, or if the number of workers was reduced."""
    tx.execute(
        "delete from nodes where installation = :installation "
        f"and seen_at < now_us() - {DEAD_US} and name not in (select value from json_each(:names))",
        installation=installation,
        names=json.dumps(names),
    )


def beat(tx: Tx, node_id: int, session: str, address: str) -> int | None:
    """Write a heartbeat, and return its time. Return None if another process has joined under this node's name."""
    sql = (
        "update nodes set seen_at = now_us(), address = :address where id = :id and session = :session "
        "returning seen_at"
    )
    return tx.value(int, sql, id=node_id, session=session, address=address)


def leave(tx: Tx, node_id: int, session: str) -> None:
    """Release the name and the lease of a node that stops."""
    tx.execute(
        f"update nodes set seen_at = seen_at - {DEAD_US} where id = :id and session = :session",
        id=node_id,
        session=session,
    )
    tx.execute("update leases set until = 0 where node_id = :id", id=node_id)


def forget(tx: Tx, name: str) -> bool:
    """Delete a dead node and its notices. Return False if there is no dead node with this name."""
    dead = f"select id from nodes where name = :name and seen_at < now_us() - {DEAD_US}"
    tx.execute(f"delete from notices where node_id in ({dead})", name=name)
    return tx.execute(f"delete from nodes where id in ({dead})", name=name) == 1


def renew(tx: Tx, node_id: int) -> Lease | None:
    """Renew the lease if the given node holds it. If the lease has expired, the given node takes it. Return None if
    another node holds the lease. A lease that ends more than twice its duration from now has expired, too, because the
    clock of the database was ahead. A smaller correction of the clock ends no lease.

    A heartbeat calls this function, and must not wait for a transaction that has checked the lease with `holds`. A
    renewal does not conflict with the lock of `holds`. If the lease of another node has expired but is still locked,
    this call does not take it, and a later heartbeat takes it.
    """
    until = f"until = now_us() + {LEASE_US}"
    renewed = f"update leases set {until} where name = '{_LEASE}' and node_id = :id returning node_id, fence"
    ended = (
        f"select name from leases where name = '{_LEASE}' and until not between now_us() and now_us() + {2 * LEASE_US} "
        "for update skip locked"
    )
    taken = (
        f"update leases set node_id = :id, fence = fence + 1, {until} where name = ({ended}) returning node_id, fence"
    )
    return tx.one(Lease, renewed, id=node_id) or tx.one(Lease, taken, id=node_id)


def holds(tx: Tx, lease: Lease) -> bool:
    """Return whether the node still holds the lease. If so, no other node can take the lease until the transaction
    ends."""
    sql = f"select 1 from leases where name = '{_LEASE}' and node_id = :id and fence = :fence for key share"
    return bool(tx.rows(sql, id=lease.node_id, fence=lease.fence))


@dataclass(frozen=True, slots=True)
class Replication:
    """The replication of the database.

    standbys: the number of standby servers (see `replication`). is_synchronous: whether a commit waits for a standby
    server.
    """

    standbys: int
    is_synchronous: bool


def replication(tx: Tx) -> Replication:
    """Return the state of the database's replication. The number of standby servers is the higher of two numbers: the
    connected standbys, and the physical replication slots."""
    found = tx.one(
        _replication,
        "select greatest((select count(*) from pg_stat_replication), "
        "(select count(*) from pg_replication_slots where slot_type = 'physical')) as standbys, "
        "current_setting('synchronous_standby_names') <> '' "
        "and current_setting('synchronous_commit') not in ('off', 'local') as is_synchronous",
    )
    assert found is not None  # noqa: S101  the statement returns a row
    return found


def _replication(*, standbys: int, is_synchronous: int) -> Replication:
    return Replication(standbys, bool(is_synchronous))


def mark(tx: Tx, version: int, mark: str) -> str:
    """Store the mark of a version of the master key, unless the store already has a mark of this version. Return the
    mark that is then in the store.

    mark: a hash of the key. If the marks of two nodes differ, their keys differ.
    """
    tx.execute(
        "insert into master_keys (version, mark) values (:version, :mark) on conflict (version) do nothing",
        version=version,
        mark=mark,
    )
    return tx.value(str, "select mark from master_keys where version = :version", version=version) or ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of a node. id: a number. A later commit of the node has notices with higher ids, because the node writes
    all its notices over one connection."""

    node_id: int
    id: int
    kind: str
    content: str
    age_us: int


def send(tx: Tx, node_id: int, notices: Sequence[tuple[str, str]]) -> None:
    """Store notices, and announce them to the other nodes. Delete the node's expired notices. notices: (kind, content)
    for each notice."""
    tx.execute("delete from notices where node_id = :id and at < now_us() - :keep", id=node_id, keep=KEEP_US)
    tx.insert("notices", ("kind", "content"), notices, same={"node_id": node_id})
    tx.rows(f"select pg_notify('sallyport', '{NOTICES} 0')")


def notices(tx: Tx, read: Mapping[int, int], but: int, limit: int) -> list[Notice]:
    """Return the unread notices of all nodes, but not those of the node `but`. The notices of each node are in order.

    read: the id of the last notice that was read from each node.
    """
    of_node = (
        "select * from notices where node_id = n.id and id > coalesce((:read::json ->> n.id::text)::bigint, 0) "
        "order by id limit :limit"
    )
    return tx.all(
        Notice,
        "select t.node_id, t.id, t.kind, t.content, greatest(0, now_us() - t.at) as age_us "
        f"from nodes n cross join lateral ({of_node}) t where n.id <> :but order by t.node_id, t.id limit :limit",
        read=json.dumps(read),
        but=but,
        limit=limit,
    )


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A slow action of the console. answer: the sealed answer, or None while the action runs. is_running: whether the
    process that runs the action is alive."""

    answer: bytes | None
    is_running: bool


_LIVE_SESSIONS: Final = f"select session from nodes where seen_at > now_us() - {DEAD_US}"


def put_answer(tx: Tx, number: str, session_id: int, node_session: str, answer: bytes | None) -> None:
    """Write a slow action of the console. It may be written as running after its answer was written; the answer remains
    then. node_session: the process that runs the action. answer: the sealed answer, or None while the action runs."""
    tx.execute(
        "insert into console_answers (id, session_id, node_session, answer) values (:id, :session, :node, :answer) "
        "on conflict (id) do update set answer = coalesce(excluded.answer, console_answers.answer), at = now_us()",
        id=number,
        session=session_id,
        node=node_session,
        answer=answer,
    )


def answer(tx: Tx, number: str, session_id: int) -> KeptAnswer | None:
    """Return a slow action of a session of the console, or None."""
    return tx.one(
        KeptAnswer,
        f"select answer, node_session in ({_LIVE_SESSIONS}) as is_running from console_answers "
        "where id = :id and session_id = :session",
        id=number,
        session=session_id,
    )


def drop_answer(tx: Tx, number: str) -> None:
    """Delete a slow action of the console."""
    tx.execute("delete from console_answers where id = :id", id=number)


def forget_answers(tx: Tx, kept_us: int) -> None:
    """Delete the answers that are older than `kept_us`, and the actions whose process has ended."""
    tx.execute(
        "delete from console_answers where (answer is not null and at < now_us() - :kept) "
        f"or (answer is null and node_session not in ({_LIVE_SESSIONS}))",
        kept=kept_us,
    )


def put_senders(tx: Tx, node_id: int, senders: str) -> None:
    """Replace the senders without an answer of a node. senders: a list in JSON."""
    tx.execute(
        "insert into node_senders (node_id, senders) values (:id, :senders) "
        "on conflict (node_id) do update set senders = excluded.senders",
        id=node_id,
        senders=senders,
    )


def senders_elsewhere(tx: Tx, own_id: int, own: Sequence[str]) -> list[str]:
    """Return the senders without an answer of each live node, as lists in JSON, except the node `own_id` and the nodes
    with the names `own`."""
    sql = (
        "select senders from node_senders join nodes n on n.id = node_id "
        f"where n.seen_at > now_us() - {DEAD_US} and n.name not in (select value from json_each(:own)) "
        "and n.id <> :id order by n.name"
    )
    return [str(senders) for (senders,) in tx.rows(sql, id=own_id, own=json.dumps(list(own)))]

"""The schema of a new store: the tables of all areas, as SQL for both SQLite and PostgreSQL.

The parts of a statement that differ between the engines are placeholders, such as `{id}`. `dialect` has the SQL of each
engine for the placeholders.

tables    `FILES`, one for each area; the steps after them are `HISTORY`, each in a file of its own
limits    triggers that count the rows of tenants; those of PostgreSQL are in `store.postgres.limits`
TRIGGERS  all other triggers
SEARCHED  the tables with a search index
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from sallyport.store.schema.dialect import Dialect

FILES: Final = ("tenancy", "inventory", "endpoints", "agents", "directory", "did", "login")
"""The files of the baseline. The order matters, because a table must come after the tables to which it refers."""
HISTORY: Final = (
    "signin",
    "identities",
    "login_steps",
    "node_senders",
    "request_list",
    "console_answers",
    "login_attributes",
    "answers_by_id",
    "did_kinds",
    "domain_realms",
    "network_bits",
    "references",
    "group_keys",
    "learned_values",
    "mac_forms",
    "bounded_writes",
    "sign_in_attempts",
)
"""The files of the steps after the baseline, oldest first. A released step is never changed. An engine may do more in a
step than its file."""
OF_NODES: Final = frozenset({"node_senders", "console_answers"})
"""The steps that only a database of several nodes needs."""
SEARCHED: Final = (
    "devices", "directory_groups", "directory_users", "dids", "endpoint_groups", "endpoint_instances", "endpoint_users",
    "wallets",
)  # fmt: skip
"""The tables that have a search index (`store.search`)."""
_APPEND_ONLY: Final = (
    ("events", "events are append-only"),
    ("accounting_records", "accounting records are append-only"),
    ("audit_trail", "the audit trail is append-only"),
)
_TEXT: Final = re.compile(r"(?<=[a-z_] )text(?= not null| primary key|,|\)|$)", re.MULTILINE)
"""The word `text` as the type of a column."""


def statements(dialect: Dialect) -> Iterator[str]:
    """Yield the statements that create the tables, indexes and triggers of the baseline, in an engine's dialect."""
    for name in FILES:
        yield from statements_of(name, dialect)
    yield from _triggers(dialect)


def statements_of(name: str, dialect: Dialect) -> Iterator[str]:
    """Yield the statements of one file of this package, in an engine's dialect. name: the file's name without
    `.sql`."""
    text = _TEXT.sub(dialect.text, files(__package__).joinpath(f"{name}.sql").read_text())
    for mark, written in (("id", dialect.id), ("rowid", dialect.rowid), ("clustered", dialect.clustered)):
        text = text.replace(f"{{{mark}}}", written)
    yield from (statement for statement in text.split(";\n") if statement.strip())


def steps(letter: str, *, has_nodes: bool) -> Iterator[tuple[str, str]]:
    """Yield (name, file) of each step after the baseline, such as ("m0002_signin", "signin").

    letter: the first letter of an engine's names. has_nodes: whether several nodes use a database of the engine.
    """
    files_of_engine = [each for each in HISTORY if has_nodes or each not in OF_NODES]
    yield from ((f"{letter}{number:04}_{file}", file) for number, file in enumerate(files_of_engine, start=2))


def _triggers(dialect: Dialect) -> Iterator[str]:
    for table, message in _APPEND_ONLY:
        yield from dialect.trigger(f"{table}_append_only", f"before update on {table}", [dialect.abort(message)])
    total = (
        "update audit_totals set value = value - 1 "
        "where tenant_id = old.tenant_id and domain_id = coalesce(old.domain_id, 0)"
    )
    yield from dialect.trigger("audit_trail_total", "after delete on audit_trail", [total])
    children = ["delete from radius_client_domains where client_id = old.id"]
    yield from dialect.trigger("radius_clients_children", "before delete on radius_clients", children)
    children = [
        f"delete from {table} where instance_id = old.id"
        for table in ("agent_orders", "agent_discovered", "agent_grants")
    ]
    yield from dialect.trigger("endpoint_instances_children", "before delete on endpoint_instances", children)

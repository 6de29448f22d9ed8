"""The schema of a new store: the tables of all areas, as SQL for both SQLite and PostgreSQL.

The parts of a statement that differ between the engines are placeholders, such as `{id}`. `dialect` has the SQL of each
engine for the placeholders.

tables    `FILES`, one for each area; a later step has a file of its own
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
SIGN_IN: Final = "signin"
"""The file of the step after the baseline."""
IDENTITIES: Final = "identities"
"""The file of the step after that of `SIGN_IN`."""
LOGIN_STEPS: Final = "login_steps"
"""The file of the step after that of `IDENTITIES`."""
REQUEST_LIST: Final = "request_list"
"""The file of the step that indexes presentation requests."""
LOGIN_ATTRIBUTES: Final = "login_attributes"
"""The file of the step that adds the attributes of an answer to the events."""
ANSWERS_BY_ID: Final = "answers_by_id"
"""The file of the step that drops the index of kept answers by their time."""
DID_KINDS: Final = "did_kinds"
"""The file of the step that indexes a domain's DIDs by their kind."""
DOMAIN_REALMS: Final = "domain_realms"
"""The file of the step that adds the table of the realms of domains."""
NETWORK_BITS: Final = "network_bits"
"""The file of the step that indexes the networks of RADIUS clients."""
REFERENCES: Final = "references"
"""The file of the step that indexes references between tables."""
GROUP_KEYS: Final = "group_keys"
"""The file of the step that adds the names of directory groups in the form for comparison."""
LEARNED_VALUES: Final = "learned_values"
"""The file of the step that adds the age of the learned values of devices."""
MAC_FORMS: Final = "mac_forms"
"""The file of the step that adds the forms of MAC authentication bypass to RADIUS clients."""
BOUNDED_WRITES: Final = "bounded_writes"
"""The file of the step that adds the indexes for writes of bounded length."""
SIGN_IN_ATTEMPTS: Final = "sign_in_attempts"
"""The file of the step that adds the rate limits of sign-ins to the console."""
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

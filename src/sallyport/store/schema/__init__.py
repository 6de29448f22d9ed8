"""The schema of the store, as SQL for both SQLite and PostgreSQL.

The parts of a statement that differ between the engines are placeholders, such as `{id}`. `dialect` has the SQL of each
engine for the placeholders.

The baseline has the tables of `BASELINE_FILES`. Each later step is a file in the folder `schema` of the area to which
its tables belong, such as `areas/clients/schema/0016_mac_forms.sql`. The numbers order the steps. A released step is
never changed. An engine may do more in a step than its file.

limits    triggers that count the rows of tenants; those of PostgreSQL are in `store.postgres.limits`
TRIGGERS  all other triggers
SEARCHED  the tables with a search index
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.store.schema.dialect import Dialect

BASELINE_FILES: Final = ("tenancy", "inventory", "endpoints", "agents", "directory", "did", "login")
"""The order matters, because a table must come after the tables to which it refers."""
PACKAGE: Final = Path(__file__).parents[2]
"""The folder of the program, in which all areas are."""
OF_NODES: Final = "nodes"
"""The folder whose steps only a database of several nodes needs."""
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
    for name in BASELINE_FILES:
        yield from statements_of(Path(__file__).with_name(f"{name}.sql"), dialect)
    yield from _triggers(dialect)


def statements_of(file: Path, dialect: Dialect) -> Iterator[str]:
    """Yield the statements of a file, in an engine's dialect."""
    text = _TEXT.sub(dialect.text, file.read_text(encoding="utf-8"))
    for mark, written in (("id", dialect.id), ("rowid", dialect.rowid), ("clustered", dialect.clustered)):
        text = text.replace(f"{{{mark}}}", written)
    yield from (statement for statement in text.split(";\n") if statement.strip())


LAST_COUNTED: Final = "0018"


@dataclass(frozen=True, slots=True)
class StepFile:
    """The file of a step after the baseline. name: the name of the step, which the database stores. topic: the file's
    name without its number."""

    name: str
    topic: str
    file: Path


def step_files(letter: str, folders: Sequence[Path] = (PACKAGE,), *, has_nodes: bool) -> list[StepFile]:
    """Return the files of the steps after the baseline, oldest first. Raises ValueError if two files have the same
    number.

    A name contains the number of its file, so that a later step with a smaller number renames no step. Only the names
    up to LAST_COUNTED count the steps of the engine: databases have these names already.

    letter: the first letter of the names of an engine's steps. folders: the folders of areas. has_nodes: whether
    several nodes use a database of the engine.
    """
    files = sorted((file for folder in folders for file in folder.rglob("schema/[0-9]*_*.sql")), key=lambda f: f.name)
    if twice := [number for number, count in Counter(file.name[:4] for file in files).items() if count > 1]:
        raise ValueError(f"two steps of the schema have the number {twice[0]}")
    of_engine = [file for file in files if has_nodes or file.parents[1].name != OF_NODES]
    counted = {file: f"{count:04}" for count, file in enumerate(of_engine, start=2) if file.name[:4] <= LAST_COUNTED}
    topics = [(counted.get(file, file.name[:4]), file.stem.partition("_")[2], file) for file in of_engine]
    return [StepFile(f"{letter}{number}_{topic}", topic, file) for number, topic, file in topics]


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

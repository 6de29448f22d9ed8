"""Write baseline.sql: a database of the baseline with one domain."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from prometheus_client import CollectorRegistry

from sallyport.metrics import StoreMetrics
from sallyport.store.data_folder import Reserve
from sallyport.store.migrations import BASELINE
from sallyport.store.sqlite import SqliteStore

STATEMENTS = "select name, sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by rowid"
ROWS = f"""insert into _sqlite_migrations values (1, 'sallyport', '{BASELINE}', '2026-11-23 00:00:00+00:00');
insert into config_version values (1, 1);
insert into organizations values (1, 'Example', 0);
insert into tenants values (1, 1, 1, 'Example', 0);
insert into domains (id, tenant_id, name, directory_name, enforcement_mode, fallback_action, first_factor, status,
    realms, created_at, name_key) values (1, 1, 'corp', '', 'monitor', 'deny', 'local', 'active', '', 0, 'corp');
"""  # noqa: S608


def schema(path: Path) -> list[tuple[str, str]]:
    """Return names and statements of the schema, without the tables that FTS5 makes itself."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(STATEMENTS).fetchall()
    searches = tuple(f"{name}_" for name, sql in found if " using fts5 " in sql)
    return [(name, sql) for name, sql in found if not name.startswith(searches) or "VIRTUAL" in sql]


def main() -> None:
    """Write the file beside this module."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.db")
        SqliteStore(path, StoreMetrics(CollectorRegistry()), Reserve(path.with_name("reserve"), 0)).close()
        made = "".join(f"{sql};\n" for _, sql in schema(path))
    Path(__file__).with_suffix(".sql").write_text(made + ROWS)


if __name__ == "__main__":
    main()

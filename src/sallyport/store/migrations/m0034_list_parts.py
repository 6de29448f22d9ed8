"""Large lists are counted in parts of 4096 ids, too, beside their totals (`store.counters`)."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

COUNT = """
insert into counters (domain_id, name, value)
select domain_id, '{table}#' || printf('%013x', id >> 12), count(*) from {table} group by domain_id, id >> 12;
"""
TABLES = ("endpoint_users", "endpoint_instances", "directory_users")


def apply(db: Database) -> None:
    """Count what is there."""
    for table in TABLES:
        execute_all(db, COUNT.format(table=table))

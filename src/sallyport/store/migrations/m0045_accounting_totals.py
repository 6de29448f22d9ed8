"""Accounting records have a kept total for each domain, so that each tenant's part of the store is known."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

COUNT = """
insert into counters (domain_id, name, value)
select domain_id, 'accounting', count(*) from accounting_records group by domain_id;
"""


def apply(db: Database) -> None:
    """Count the records of each domain."""
    execute_all(db, COUNT)

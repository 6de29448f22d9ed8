"""The last privilege status of each agent, and an index that finds endpoint users by their DID."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table agents add column privileges text not null default '{}';
create index endpoint_users_did on endpoint_users (domain_id, did) where did <> '';
"""


def apply(db: Database) -> None:
    """Add the column and the index."""
    execute_all(db, SCHEMA)

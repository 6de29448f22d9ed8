"""The key by which states were signed before, for agents that have not heard of the present one; and which logins were
computers' own, for the preview."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table agent_signers add column former_public blob;
alter table agent_signers add column former_private blob;
alter table events add column machine integer;
"""


def apply(db: Database) -> None:
    """Add the columns."""
    execute_all(db, SCHEMA)

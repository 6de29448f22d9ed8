"""What agents keep of an account is found by the account's name on all machines, since it ends with its user."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create index agent_passwords_name on agent_passwords (account, state);
create index agent_takeovers_name on agent_takeovers (account);
"""


def apply(db: Database) -> None:
    """Make the indexes."""
    execute_all(db, SCHEMA)

"""MFA providers of domains, and challenges that wait for their answer."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table mfa_providers (
    domain_id integer primary key references domains (id), provider text not null, fields blob not null,
    timeout_s integer not null, changed_at integer not null
);
create table challenges (
    id text primary key, domain_id integer not null, expires_at integer not null, session text not null
);
create index challenges_expired on challenges (expires_at);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)

"""API keys of agents. `instance_id` is null for a key of the whole domain, `uses` for a key without a limit;
`successor_of` is the key that ends when this one is first used. `api_key_machines`: what an enrolment key was used
for, one row for each use."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table api_keys (
    id integer primary key autoincrement, domain_id integer not null references domains (id), instance_id integer,
    kind text not null, agent text not null, name text not null, hash text not null unique, uses integer,
    used integer not null default 0, successor_of integer, created_at integer not null, expires_at integer not null,
    revoked_at integer, seen_at integer
);
create index api_keys_order on api_keys (domain_id, id);
create index api_keys_instance on api_keys (instance_id) where instance_id is not null;
create table api_key_machines (
    key_id integer not null references api_keys (id) on delete cascade, machine text not null,
    primary key (key_id, machine)
) without rowid;
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)

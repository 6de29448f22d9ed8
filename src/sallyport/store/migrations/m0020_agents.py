"""Endpoint agents: who they are, what they should make of their machines, and what they say of them.

What is an instance's goes with it. `agents.version` grows whenever what the machine should be like changes, and
`digest` tells whether it does. `agent_ways` holds since when a user may use a machine by which group (0: directly):
a time to live begins there. `agent_settings` with instance_id 0 are those of the whole domain. Secrets are sealed.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table agents (
    instance_id integer primary key references endpoint_instances (id) on delete cascade,
    domain_id integer not null references domains (id), machine text not null, agent_version text not null default '',
    enrolled_at integer not null, seen_at integer not null, version integer not null default 0,
    digest text not null default '', changed_at integer not null default 0, applied_version integer not null default 0,
    applied_at integer, discovered_at integer, privileges_at integer
);
create index agents_order on agents (domain_id, instance_id);
create index agents_machine on agents (domain_id, machine);
create table agent_signers (
    domain_id integer primary key references domains (id), public_key blob not null, private_key blob not null
);
create table agent_settings (
    domain_id integer not null references domains (id), instance_id integer not null, fields text not null,
    primary key (domain_id, instance_id)
) without rowid;

create table agent_ways (
    instance_id integer not null references endpoint_instances (id) on delete cascade,
    user_id integer not null references endpoint_users (id) on delete cascade, group_id integer not null,
    since integer not null, primary key (instance_id, user_id, group_id)
) without rowid;
create index agent_ways_user on agent_ways (user_id);
create table agent_hashes (
    user_id integer primary key references endpoint_users (id) on delete cascade, stamp text not null,
    hash blob not null, made_at integer not null
);
create table agent_takeovers (
    instance_id integer not null references endpoint_instances (id) on delete cascade, account text not null,
    at integer not null, primary key (instance_id, account)
) without rowid;

create table agent_passwords (
    id integer primary key autoincrement,
    instance_id integer not null references endpoint_instances (id) on delete cascade, account text not null,
    rotation text not null, password blob not null, hash blob not null, state text not null,
    stored_at integer not null, ended_at integer, unique (instance_id, rotation)
);
create index agent_passwords_account on agent_passwords (instance_id, account, state);
create table agent_orders (
    id integer primary key autoincrement,
    instance_id integer not null references endpoint_instances (id) on delete cascade, kind text not null,
    accounts text not null, ordered_at integer not null, ended_at integer, error text not null default ''
);
create index agent_orders_instance on agent_orders (instance_id, ended_at, id);

create table agent_reports (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    instance_id integer not null references endpoint_instances (id) on delete cascade, number text not null,
    at integer not null, version integer not null, outcome text not null, told text not null,
    unique (instance_id, number)
);
create table agent_drift (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    instance_id integer not null references endpoint_instances (id) on delete cascade, kind text not null,
    subject text not null, detail text not null, put_back integer not null, first_at integer not null,
    last_at integer not null, ended_at integer, unique (instance_id, kind, subject, detail)
);
create index agent_drift_order on agent_drift (domain_id, id);
create table agent_discovered (
    instance_id integer not null references endpoint_instances (id) on delete cascade, kind text not null,
    name text not null, user_id integer references endpoint_users (id) on delete set null, told text not null,
    at integer not null, primary key (instance_id, kind, name)
) without rowid;
create index agent_discovered_user on agent_discovered (user_id) where user_id is not null;
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)

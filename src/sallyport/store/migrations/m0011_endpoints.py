"""Endpoint instances and groups, more about endpoint users, and who is assigned to what.

`total_users`, `total_groups` and `users_count` are kept with the assignments, and so is `assigned`: whether a user is
assigned to any instance. `active` says whether a group's status grants anything. `motp_step` of a seed that was given
by an admin is -1: none of its codes is spent.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all
from sallyport.store.search import pieces

SCHEMA = """
create table endpoint_instances (
    id integer primary key autoincrement, domain_id integer not null references domains (id), name text not null,
    name_key text not null, os_id integer not null, public_ip text not null, private_ip text not null,
    host_name text not null, status text not null, auth_type text not null, total_users integer not null default 0,
    total_groups integer not null default 0, created_at integer not null, updated_at integer not null,
    unique (domain_id, name_key)
);
create index endpoint_instances_order on endpoint_instances (domain_id, id);
create index endpoint_instances_host on endpoint_instances (domain_id, lower(host_name), id);
create virtual table endpoint_instances_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);

create table endpoint_groups (
    id integer primary key autoincrement, domain_id integer not null references domains (id), name text not null,
    name_key text not null, ou text not null, cn text not null, dc text not null, auth_flow text not null,
    status text not null, active integer not null, users_count integer not null default 0,
    created_at integer not null, updated_at integer not null, unique (domain_id, name_key)
);
create index endpoint_groups_order on endpoint_groups (domain_id, id);
create virtual table endpoint_groups_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);
create table endpoint_credential_policies (
    id integer primary key autoincrement,
    group_id integer not null unique references endpoint_groups (id) on delete cascade, ttl_user text not null,
    privileged_user text not null, policy_id integer, home_dir text not null
);
create index endpoint_credential_policies_policy on endpoint_credential_policies (policy_id)
    where policy_id is not null;

alter table endpoint_users add column privileged_user text not null default '';
alter table endpoint_users add column ssh_key text not null default '';
alter table endpoint_users add column did text not null default '';
alter table endpoint_users add column source text not null default 'Local';
alter table endpoint_users add column assigned integer not null default 0;
create index endpoint_users_order on endpoint_users (domain_id, id);
create index endpoint_users_type on endpoint_users (domain_id, lower(user_type), id);
create index endpoint_users_credential on endpoint_users (domain_id, lower(credential_type), id);
create index endpoint_users_source on endpoint_users (domain_id, lower(source), id);
create index endpoint_users_assigned on endpoint_users (domain_id, assigned, id);
create virtual table endpoint_users_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);

create table endpoint_instance_users (
    instance_id integer not null references endpoint_instances (id),
    user_id integer not null references endpoint_users (id), primary key (instance_id, user_id)
) without rowid;
create index endpoint_instance_users_user on endpoint_instance_users (user_id, instance_id);
create table endpoint_instance_groups (
    instance_id integer not null references endpoint_instances (id),
    group_id integer not null references endpoint_groups (id), primary key (instance_id, group_id)
) without rowid;
create index endpoint_instance_groups_group on endpoint_instance_groups (group_id, instance_id);
create table endpoint_group_users (
    group_id integer not null references endpoint_groups (id),
    user_id integer not null references endpoint_users (id), primary key (group_id, user_id)
) without rowid;
create index endpoint_group_users_user on endpoint_group_users (user_id, group_id);

insert into counters (domain_id, name, value)
    select domain_id, 'endpoint_users', count(*) from endpoint_users group by domain_id;
insert into counters (domain_id, name, value)
    select domain_id, 'endpoint_users/user_type', count(*) from endpoint_users where user_type = 'Local'
    group by domain_id;
insert into counters (domain_id, name, value)
    select domain_id, 'endpoint_users/credential_type', count(*) from endpoint_users
    where credential_type = 'Password' group by domain_id;
insert into counters (domain_id, name, value)
    select domain_id, 'endpoint_users/source', count(*) from endpoint_users group by domain_id;
"""


def apply(db: Database) -> None:
    """Make them, and let the users that are there be found."""
    execute_all(db, SCHEMA)
    for user_id, domain_id, name_key in db.execute("select id, domain_id, name_key from endpoint_users").fetchall():
        db.execute(
            "insert into endpoint_users_search (rowid, pieces) values (?, ?)",
            (user_id, pieces(domain_id, (name_key,))),
        )

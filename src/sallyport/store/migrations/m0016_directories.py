"""Directories, the people, groups and units that they have, who is a member of what, and the imports.

Who is a member of what is kept by keys, the hashes of names (`directory.lines`), as the directories tell it: a member
may be imported before its group, or never. `told` is 0 where the group names the member and 1 where the member names
the group. `members` of a group is kept: what is in it itself. `digest` is of all that was read of an entry, `seen` the
last import that told of it, `mapping` of a user the digest of the mappings that its fields were made by.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table directories (
    id integer primary key autoincrement, domain_id integer not null references domains (id), name text not null,
    name_key text not null, kind text not null, account_name text not null, app_url text not null,
    settings text not null, secret blob, cursor text not null default '', mapping text not null default '{}',
    created_at integer not null, updated_at integer not null, unique (domain_id, name_key)
);

create table directory_users (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    directory_id integer not null references directories (id), external_id text not null, dn text not null,
    dn_key blob not null, uid_key blob not null, login text not null, name text not null, display_name text not null,
    email text not null, upn text not null, status text not null, cloud integer not null, fields text not null,
    mapping blob not null, digest blob not null, seen integer not null, created_at integer not null,
    updated_at integer not null, unique (domain_id, directory_id, external_id)
);
create index directory_users_order on directory_users (domain_id, id);
create index directory_users_cloud on directory_users (domain_id, cloud, id);
create index directory_users_own on directory_users (directory_id, id);
create index directory_users_dn on directory_users (directory_id, dn_key);
create index directory_users_uid on directory_users (directory_id, uid_key);
create virtual table directory_users_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);
create table directory_attributes (
    user_id integer primary key references directory_users (id), attributes text not null
);
create table directory_names (
    domain_id integer not null, name_key text not null, user_id integer not null references directory_users (id),
    is_alias integer not null, primary key (domain_id, name_key, user_id)
) without rowid;
create index directory_names_user on directory_names (user_id);

create table directory_groups (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    directory_id integer not null references directories (id), external_id text not null, dn text not null,
    dn_key blob not null, name text not null, members integer not null default 0, mapping text not null default '{}',
    digest blob not null, seen integer not null, created_at integer not null, updated_at integer not null,
    unique (domain_id, directory_id, external_id)
);
create index directory_groups_order on directory_groups (domain_id, id);
create index directory_groups_own on directory_groups (directory_id, id);
create index directory_groups_dn on directory_groups (directory_id, dn_key);
create index directory_groups_mapped on directory_groups (domain_id, id) where mapping <> '{}';
create virtual table directory_groups_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);
create table directory_units (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    directory_id integer not null references directories (id), external_id text not null, dn text not null,
    dn_key blob not null, name text not null, digest blob not null, seen integer not null,
    created_at integer not null, updated_at integer not null, unique (domain_id, directory_id, external_id)
);
create index directory_units_own on directory_units (directory_id, id);
create index directory_units_dn on directory_units (directory_id, dn_key);
create table directory_members (
    directory_id integer not null references directories (id), member_key blob not null, group_key blob not null,
    told integer not null, primary key (directory_id, member_key, group_key, told)
) without rowid;
create index directory_members_group on directory_members (directory_id, group_key, told, member_key);

create table directory_jobs (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    directory_id integer not null references directories (id), kind text not null, state text not null,
    file_name text not null, file text not null, complete integer not null, source text not null, secret blob,
    cursor text not null default '', total integer not null default 0, added integer not null default 0,
    updated integer not null default 0, removed integer not null default 0, skipped integer not null default 0,
    failed integer not null default 0, position integer not null default 0, errors text not null default '[]',
    message text not null default '', created_at integer not null, started_at integer, ended_at integer
);
create index directory_jobs_order on directory_jobs (domain_id, id);
create index directory_jobs_own on directory_jobs (directory_id, id);
create index directory_jobs_open on directory_jobs (id) where state in ('QUEUED', 'RUNNING');

create table directory_runs (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    directory_id integer not null unique references directories (id), file text not null, complete integer not null,
    sequence integer not null default 0, octets integer not null default 0, entries integer not null default 0,
    created_at integer not null, updated_at integer not null
);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)

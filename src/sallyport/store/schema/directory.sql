-- Imported directories.

create table directories (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    kind text not null, account_name text not null, app_url text not null, settings text not null, secret bytea,
    cursor text not null default '', mapping text not null default '{}', created_at bigint not null,
    updated_at bigint not null, unique (domain_id, name_key)
);

create table directory_users (
    id {id}, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, uid_key bytea not null, login text not null, name text not null,
    display_name text not null, email text not null, upn text not null, status text not null, cloud bigint not null,
    fields text not null, mapping bytea not null, digest bytea not null, seen bigint not null,
    created_at bigint not null, updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
create index directory_users_order on directory_users (domain_id, id);
create index directory_users_cloud on directory_users (domain_id, cloud, id);
create index directory_users_own on directory_users (directory_id, id);
create index directory_users_dn on directory_users (directory_id, dn_key);
create index directory_users_uid on directory_users (directory_id, uid_key);

create table directory_attributes (user_id {rowid} references directory_users (id), attributes text not null);

create table directory_names (
    domain_id bigint not null, name_key text not null, user_id bigint not null references directory_users (id),
    is_alias bigint not null, primary key (domain_id, name_key, user_id)
) {clustered};
create index directory_names_user on directory_names (user_id);

create table directory_groups (
    id {id}, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, name text not null, members bigint not null default 0,
    mapping text not null default '{}', digest bytea not null, seen bigint not null, created_at bigint not null,
    updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
create index directory_groups_order on directory_groups (domain_id, id);
create index directory_groups_own on directory_groups (directory_id, id);
create index directory_groups_dn on directory_groups (directory_id, dn_key);
create index directory_groups_mapped on directory_groups (domain_id, id) where mapping <> '{}';

create table directory_units (
    id {id}, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, name text not null, digest bytea not null, seen bigint not null,
    created_at bigint not null, updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
create index directory_units_own on directory_units (directory_id, id);
create index directory_units_dn on directory_units (directory_id, dn_key);

create table directory_members (
    directory_id bigint not null references directories (id), member_key bytea not null, group_key bytea not null,
    told bigint not null, primary key (directory_id, member_key, group_key, told)
) {clustered};
create index directory_members_group on directory_members (directory_id, group_key, told, member_key);

create table directory_jobs (
    id {id}, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), kind text not null, state text not null,
    file_name text not null, file text not null, complete bigint not null, source text not null, secret bytea,
    cursor text not null default '', total bigint not null default 0, added bigint not null default 0,
    updated bigint not null default 0, removed bigint not null default 0, skipped bigint not null default 0,
    failed bigint not null default 0, position bigint not null default 0, errors text not null default '[]',
    message text not null default '', created_at bigint not null, started_at bigint, ended_at bigint,
    removals bigint not null default 0, node_id bigint not null default 0
);
create index directory_jobs_order on directory_jobs (domain_id, id);
create index directory_jobs_own on directory_jobs (directory_id, id);
create index directory_jobs_open on directory_jobs (id) where state in ('QUEUED', 'RUNNING');

create table directory_runs (
    id {id}, domain_id bigint not null references domains (id),
    directory_id bigint not null unique references directories (id), file text not null, complete bigint not null,
    sequence bigint not null default 0, octets bigint not null default 0, entries bigint not null default 0,
    created_at bigint not null, updated_at bigint not null, node_id bigint not null default 0
);

create table directory_schedules (
    directory_id {rowid} references directories (id), domain_id bigint not null references domains (id),
    every_minutes bigint not null, times text not null, zone text not null, full_every bigint not null,
    runs bigint not null default 0, next_at bigint not null, updated_at bigint not null
);
create index directory_schedules_due on directory_schedules (next_at);
create index directory_schedules_domain on directory_schedules (domain_id);

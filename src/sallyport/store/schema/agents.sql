-- Endpoint agents: state, orders, reports, rotated passwords.

create table agents (
    instance_id {rowid} references endpoint_instances (id) on delete cascade,
    domain_id bigint not null references domains (id), machine text not null,
    agent_version text not null default '', enrolled_at bigint not null, seen_at bigint not null,
    version bigint not null default 0, digest text not null default '', changed_at bigint not null default 0,
    applied_version bigint not null default 0, applied_at bigint, discovered_at bigint, privileges_at bigint,
    privileges text not null default '{}'
);
create index agents_order on agents (domain_id, instance_id);
create index agents_machine on agents (domain_id, machine);

create table agent_signers (
    domain_id {rowid} references domains (id), public_key bytea not null, private_key bytea not null,
    former_public bytea, former_private bytea
);

create table agent_settings (
    domain_id bigint not null references domains (id), instance_id bigint not null, fields text not null,
    primary key (domain_id, instance_id)
) {clustered};

create table agent_grants (
    instance_id bigint not null references endpoint_instances (id) on delete cascade,
    user_id bigint not null references endpoint_users (id) on delete cascade, group_id bigint not null,
    since bigint not null, primary key (instance_id, user_id, group_id)
) {clustered};
create index agent_grants_user on agent_grants (user_id);

create table agent_hashes (
    user_id {rowid} references endpoint_users (id) on delete cascade, stamp text not null, hash bytea not null,
    made_at bigint not null
);

create table agent_takeovers (
    domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, account text not null,
    at bigint not null, primary key (instance_id, account)
) {clustered};
create index agent_takeovers_name on agent_takeovers (domain_id, account);

create table agent_passwords (
    id {id}, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade,
    account text not null, rotation text not null, password bytea not null, hash bytea not null,
    state text not null, stored_at bigint not null, ended_at bigint, unique (instance_id, rotation)
);
create index agent_passwords_account on agent_passwords (instance_id, account, state);
create index agent_passwords_name on agent_passwords (domain_id, account, state);

create table agent_orders (
    id {id}, instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    accounts text not null, ordered_at bigint not null, ended_at bigint, error text not null default ''
);
create index agent_orders_instance on agent_orders (instance_id, ended_at, id);

create table agent_reports (
    id {id}, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, number text not null,
    at bigint not null, version bigint not null, outcome text not null, told text not null,
    unique (instance_id, number)
);
create index agent_reports_domain on agent_reports (domain_id, id);

create table agent_drift (
    id {id}, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    subject text not null, detail text not null, put_back bigint not null, first_at bigint not null,
    last_at bigint not null, ended_at bigint, unique (instance_id, kind, subject, detail)
);
create index agent_drift_order on agent_drift (domain_id, id);

create table agent_discovered (
    instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    name text not null, user_id bigint references endpoint_users (id) on delete set null, told text not null,
    at bigint not null, primary key (instance_id, kind, name)
) {clustered};
create index agent_discovered_user on agent_discovered (user_id) where user_id is not null;

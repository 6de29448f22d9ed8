-- Organizations, tenants, domains, tokens, keys, and the audit trail.

create table config_version (id {rowid} check (id = 1), version bigint not null);

create table counters (
    domain_id bigint not null, name text not null, value bigint not null, primary key (domain_id, name)
) {clustered};

create table organizations (id {rowid}, name text not null, created_at bigint not null);

create table tenants (
    id {id}, organization_id bigint not null references organizations (id), number bigint not null,
    name text not null, created_at bigint not null, unique (organization_id, number)
);

create table access_tokens (
    id {id}, tenant_id bigint not null references tenants (id), name text not null, role text not null,
    hash text not null unique, created_at bigint not null, expires_at bigint, revoked_at bigint
);
create index access_tokens_tenant on access_tokens (tenant_id);

create table domains (
    id {id}, tenant_id bigint not null references tenants (id), name text not null, directory_name text not null,
    enforcement_mode text not null, fallback_action text not null, first_factor text not null, status text not null,
    realms text not null, created_at bigint not null, name_key text not null, reverts_at bigint,
    revert_set_at bigint, revert_mode text, revert_fallback text, glass_mode text, glass_fallback text,
    disconnect_on_revoke bigint not null default 0, issuer_name text not null default '', removed_at bigint,
    unique (tenant_id, name_key)
);

create table audit_trail (
    id {id}, at bigint not null, tenant_id bigint not null, domain_id bigint, actor_kind text not null,
    actor text not null, token_id bigint, action text not null, target text not null, changes text not null
);
create index audit_trail_order on audit_trail (at);
create index audit_trail_by_tenant on audit_trail (tenant_id, at);
create index audit_trail_by_domain on audit_trail (domain_id, at) where domain_id is not null;

create table audit_totals (
    tenant_id bigint not null, domain_id bigint not null, value bigint not null, primary key (tenant_id, domain_id)
) {clustered};

create table api_keys (
    id {id}, domain_id bigint not null references domains (id), instance_id bigint, kind text not null,
    agent text not null, name text not null, hash text not null unique, uses bigint, used bigint not null default 0,
    successor_of bigint, created_at bigint not null, expires_at bigint not null, revoked_at bigint, seen_at bigint
);
create index api_keys_order on api_keys (domain_id, id);
create index api_keys_instance on api_keys (instance_id) where instance_id is not null;

create table api_key_machines (
    key_id bigint not null references api_keys (id) on delete cascade, machine text not null,
    primary key (key_id, machine)
) {clustered};

create table limits (name text primary key, most bigint not null) {clustered};

create table tenant_rows (
    tenant_id bigint not null, name text not null, value bigint not null, primary key (tenant_id, name)
) {clustered};

-- The web console: local administrators, and the sessions of people who have signed in.

create table administrators (
    id {id}, name text not null, name_key text not null unique, role text not null,
    tenant_id bigint references tenants (id), password bytea not null, seed bytea not null,
    last_step bigint not null default 0, created_at bigint not null
);

create table console_sessions (
    id {id}, hash text not null unique, token_id bigint references access_tokens (id),
    administrator_id bigint references administrators (id), tenant_id bigint references tenants (id),
    source text not null, agent text not null, created_at bigint not null, seen_at bigint not null,
    ends_at bigint not null
);
create index console_sessions_administrator on console_sessions (administrator_id);
create index console_sessions_token on console_sessions (token_id);
create index console_sessions_end on console_sessions (ends_at);

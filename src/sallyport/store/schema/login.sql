-- First and second factors, rules, lock-outs, and the journal of logins.

create table events (
    id {id}, at bigint not null, domain_id bigint not null, user_name text not null, ip_address text not null,
    client_ip text not null, device_id bigint not null, device_name text not null, station text not null,
    method text not null, factor text not null, decision text not null, applied_decision text not null,
    would_have_been text not null, reason text not null, latency_us bigint not null, service_type bigint,
    machine bigint, node_id bigint not null default 0
);
create index events_order on events (domain_id, at);

create table answers (id {rowid}, at bigint not null, packed bytea not null);
create index answers_at on answers (at);

create table mfa_providers (
    domain_id {rowid} references domains (id), provider text not null, fields bytea not null,
    timeout_s bigint not null, changed_at bigint not null
);

create table challenges (
    id text primary key, domain_id bigint not null, expires_at bigint not null, session text not null
);
create index challenges_expired on challenges (expires_at);

create table login_rules (
    id {id}, domain_id bigint not null references domains (id), name text not null, priority bigint not null,
    enabled bigint not null, action text not null, definition text not null, attributes bytea not null,
    created_at bigint not null, updated_at bigint not null
);
create index login_rules_order on login_rules (domain_id, id);

create table first_factors (
    domain_id bigint not null references domains (id) on delete cascade, kind text not null, fields bytea not null,
    changed_at bigint not null, primary key (domain_id, kind)
) {clustered};

create table lockouts (
    id {id}, domain_id bigint not null, kind text not null, name_key text not null, name text not null,
    since bigint not null, until bigint not null, failures bigint not null, unique (domain_id, kind, name_key)
);
create index lockouts_until on lockouts (until);

create table revocations (
    id {id}, domain_id bigint not null, user_name text not null, reason text not null, at bigint not null
);

create table bypass_stations (
    id {id}, domain_id bigint not null, station text not null, name text not null, added_at bigint not null,
    unique (domain_id, station)
);

create table outlet_places (
    name text not null, type text not null, last_id bigint not null, primary key (name, type)
);

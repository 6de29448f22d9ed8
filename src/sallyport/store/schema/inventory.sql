-- RADIUS clients, network devices, stations, sessions and accounting.

create table radius_clients (
    id {id}, tenant_id bigint not null references tenants (id), name text not null, name_key text not null,
    network text not null unique, secret bytea not null, all_domains bigint not null, product text not null,
    require_message_authenticator text not null, limit_proxy_state text not null, password_verified bigint not null,
    signed_since bigint, proxy_state_limited_since bigint, created_at bigint not null,
    tls_name text not null default '', tls_fingerprint text not null default '',
    coa_port bigint not null default 3799, unique (tenant_id, name_key)
);
create unique index radius_clients_tls_name on radius_clients (tls_name) where tls_name <> '';
create unique index radius_clients_tls_fingerprint on radius_clients (tls_fingerprint) where tls_fingerprint <> '';

create table radius_client_history (
    id {rowid}, tenant_id bigint not null, client_id bigint not null, name text not null, event text not null,
    at bigint not null
);
create index radius_client_history_tenant on radius_client_history (tenant_id, at);

create table radius_client_domains (
    client_id bigint not null references radius_clients (id) on delete cascade, position bigint not null,
    domain_id bigint not null references domains (id), primary key (client_id, position)
);

create table devices (
    id {id}, domain_id bigint not null references domains (id), ip_address text not null, client_ip text not null,
    nas_identifier text not null, device_name text not null, device_type text not null,
    device_type_certainty text not null, nas_device_type text not null, nas_port_type text not null,
    nas_identifier_key text not null default '', device_type_key text not null default '',
    nas_port_type_key text not null default '', first_seen bigint not null, last_seen bigint not null,
    request_count bigint not null, registrations bigint not null, evidence text not null
);
create unique index devices_identity on devices (domain_id, ip_address, client_ip, nas_identifier);
create index devices_order on devices (domain_id, id);
create index devices_address on devices (domain_id, ip_address, id);
create index devices_client on devices (domain_id, client_ip, id);
create index devices_type on devices (domain_id, device_type_key, id);
create index devices_medium on devices (domain_id, nas_port_type_key, id);
create index devices_nas on devices (domain_id, nas_identifier_key, id);

create table device_history (
    id {rowid}, domain_id bigint not null, ip_address text not null, client_ip text not null,
    nas_identifier text not null, device_id bigint not null, event text not null, at bigint not null,
    actor text not null
);
create index device_history_deleted on device_history (domain_id, ip_address, client_ip, nas_identifier)
    where event = 'deleted';
create index device_history_device on device_history (domain_id, device_id);
create index device_history_order on device_history (domain_id, id);

create table stations (
    id {id}, domain_id bigint not null, device_id bigint not null, station text not null, user_name text not null,
    first_seen bigint not null, last_seen bigint not null, request_count bigint not null
);
create unique index stations_identity on stations (domain_id, device_id, station);
create index stations_order on stations (domain_id, id);

create table accounting_records (
    id {id}, at bigint not null, domain_id bigint not null, device_id bigint not null, status_type bigint not null,
    session_id bytea not null, user_name text not null, station text not null, attributes bytea not null
);
create index accounting_records_order on accounting_records (domain_id, at);

create table device_posture (
    device_id {rowid} references devices (id) on delete cascade, signed bigint not null, unsigned bigint not null,
    unsigned_proxied bigint not null, last_unsigned bigint, challenges bigint not null,
    challenge_answers bigint not null, retransmit_ms bigint, give_up_ms bigint
);

create table sessions (
    id {id}, domain_id bigint not null, device_id bigint not null, acct_session_id bytea not null,
    newest bigint not null, user_name text, station text, called_station text, class bytea, multi_session_id bytea,
    nas_port bigint, nas_port_id text, nas_port_type bigint, framed_ip text, framed_ipv6 text,
    framed_ipv6_prefix text, delegated_ipv6_prefix text, session_time bigint not null, input_octets bigint not null,
    output_octets bigint not null, input_packets bigint not null, output_packets bigint not null,
    started bigint not null, first_seen bigint not null, updated bigint not null, stopped bigint,
    state text not null, terminate_cause bigint, records bigint not null, recent bytea not null,
    follows bigint not null
);
create unique index sessions_identity on sessions (device_id, acct_session_id) where newest = 1;
create index sessions_order on sessions (domain_id, state, id);
create index sessions_device on sessions (domain_id, device_id, state, id);
create index sessions_user on sessions (domain_id, lower(user_name), id);
create index sessions_started on sessions (domain_id, started);
create index sessions_stopped on sessions (domain_id, stopped) where stopped is not null;

create table issued_certificates (
    fingerprint text primary key, name text not null, tenant_id bigint not null references tenants (id)
);
create index issued_certificates_name on issued_certificates (name);
create table certificate_files (name text primary key, content bytea not null, version bigint not null);

create table device_restarts (
    device_id {rowid}, domain_id bigint not null, at bigint not null, after bigint not null
);

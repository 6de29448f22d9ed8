"""Tenancy, domains, RADIUS clients, devices and stations, endpoint users, events, and the answers that were sent."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table config_version (only integer primary key check (only = 1), version integer not null);
insert into config_version (only, version) values (1, 1);
create table counters (
    domain_id integer not null, name text not null, value integer not null, primary key (domain_id, name)
) without rowid;

create table organizations (id integer primary key, name text not null, created_at integer not null);
create table tenants (
    id integer primary key autoincrement, organization_id integer not null references organizations (id),
    number integer not null, name text not null, created_at integer not null, unique (organization_id, number)
);
create table access_tokens (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id), name text not null,
    role text not null, hash text not null unique, created_at integer not null, expires_at integer, revoked_at integer
);
create index access_tokens_tenant on access_tokens (tenant_id);

create table domains (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id), name text not null,
    directory_name text not null, enforcement_mode text not null, fallback_action text not null,
    first_factor text not null, status text not null, realms text not null, created_at integer not null,
    name_key text not null, unique (tenant_id, name_key)
);

create table radius_clients (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id), name text not null,
    name_key text not null, network text not null unique, secret blob not null, all_domains integer not null,
    product text not null,
    require_message_authenticator text not null, limit_proxy_state text not null, password_verified integer not null,
    signed_since integer, proxy_state_limited_since integer, created_at integer not null,
    unique (tenant_id, name_key)
);
create table radius_client_history (
    id integer primary key, tenant_id integer not null, client_id integer not null, name text not null,
    event text not null, at integer not null
);
create table radius_client_domains (
    client_id integer not null references radius_clients (id) on delete cascade,
    position integer not null, domain_id integer not null references domains (id), primary key (client_id, position)
);

create table devices (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    ip_address text not null, client_ip text not null, nas_identifier text not null, device_name text not null,
    device_type text not null, device_type_certainty text not null, nas_device_type text not null,
    nas_port_type text not null, nas_identifier_key text not null default '', device_type_key text not null default '',
    nas_port_type_key text not null default '', first_seen integer not null, last_seen integer not null,
    request_count integer not null, registrations integer not null, evidence text not null
);
create unique index devices_identity on devices (domain_id, ip_address, client_ip, nas_identifier);
create index devices_order on devices (domain_id, id);
create index devices_address on devices (domain_id, ip_address, id);
create index devices_client on devices (domain_id, client_ip, id);
create index devices_type on devices (domain_id, device_type_key, id);
create index devices_medium on devices (domain_id, nas_port_type_key, id);
create index devices_nas on devices (domain_id, nas_identifier_key, id);
create table device_history (
    id integer primary key, domain_id integer not null, ip_address text not null, client_ip text not null,
    nas_identifier text not null, device_id integer not null, event text not null, at integer not null,
    actor text not null
);
create index device_history_deleted on device_history (domain_id, ip_address, client_ip, nas_identifier)
    where event = 'deleted';
create index device_history_device on device_history (domain_id, device_id);
create index device_history_order on device_history (domain_id, id);
create table stations (
    id integer primary key autoincrement, domain_id integer not null, device_id integer not null,
    station text not null, user_name text not null, first_seen integer not null, last_seen integer not null,
    request_count integer not null
);
create unique index stations_identity on stations (domain_id, device_id, station);
create index stations_order on stations (domain_id, id);
create virtual table devices_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);

create table endpoint_users (
    id integer primary key autoincrement, domain_id integer not null references domains (id), name text not null,
    name_key text not null, user_type text not null, credential_type text not null, password blob,
    created_at integer not null, updated_at integer not null, unique (domain_id, name_key)
);

create table events (
    id integer primary key autoincrement, at integer not null, domain_id integer not null, user_name text not null,
    ip_address text not null, client_ip text not null, device_id integer not null, device_name text not null,
    station text not null, method text not null, factor text not null, decision text not null,
    applied_decision text not null, would_have_been text not null, reason text not null, latency_us integer not null
);
create index events_order on events (domain_id, at);
create table accounting_records (
    id integer primary key autoincrement, at integer not null, domain_id integer not null, device_id integer not null,
    status_type integer not null, session_id blob not null, user_name text not null, station text not null,
    attributes blob not null
);
create index accounting_records_order on accounting_records (domain_id, at);
create table answers (id integer primary key, at integer not null, packed blob not null);
create index answers_at on answers (at);
"""


def apply(db: Database) -> None:
    """Make everything."""
    execute_all(db, SCHEMA)

CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE TABLE config_version (id integer primary key check (id = 1), version bigint not null);
CREATE TABLE counters (
    domain_id bigint not null, name text not null, value bigint not null, primary key (domain_id, name)
) without rowid;
CREATE TABLE organizations (id integer primary key, name text not null, created_at bigint not null);
CREATE TABLE tenants (
    id integer primary key autoincrement, organization_id bigint not null references organizations (id), number bigint not null,
    name text not null, created_at bigint not null, unique (organization_id, number)
);
CREATE TABLE access_tokens (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), name text not null, role text not null,
    hash text not null unique, created_at bigint not null, expires_at bigint, revoked_at bigint
);
CREATE INDEX access_tokens_tenant on access_tokens (tenant_id);
CREATE TABLE domains (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), name text not null, directory_name text not null,
    enforcement_mode text not null, fallback_action text not null, first_factor text not null, status text not null,
    realms text not null, created_at bigint not null, name_key text not null, reverts_at bigint,
    revert_set_at bigint, revert_mode text, revert_fallback text, glass_mode text, glass_fallback text,
    disconnect_on_revoke bigint not null default 0, issuer_name text not null default '', removed_at bigint,
    unique (tenant_id, name_key)
);
CREATE TABLE audit_trail (
    id integer primary key autoincrement, at bigint not null, tenant_id bigint not null, domain_id bigint, actor_kind text not null,
    actor text not null, token_id bigint, action text not null, target text not null, changes text not null
);
CREATE INDEX audit_trail_order on audit_trail (at);
CREATE INDEX audit_trail_by_tenant on audit_trail (tenant_id, at);
CREATE INDEX audit_trail_by_domain on audit_trail (domain_id, at) where domain_id is not null;
CREATE TABLE audit_totals (
    tenant_id bigint not null, domain_id bigint not null, value bigint not null, primary key (tenant_id, domain_id)
) without rowid;
CREATE TABLE api_keys (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), instance_id bigint, kind text not null,
    agent text not null, name text not null, hash text not null unique, uses bigint, used bigint not null default 0,
    successor_of bigint, created_at bigint not null, expires_at bigint not null, revoked_at bigint, seen_at bigint
);
CREATE INDEX api_keys_order on api_keys (domain_id, id);
CREATE INDEX api_keys_instance on api_keys (instance_id) where instance_id is not null;
CREATE TABLE api_key_machines (
    key_id bigint not null references api_keys (id) on delete cascade, machine text not null,
    primary key (key_id, machine)
) without rowid;
CREATE TABLE limits (name text primary key, most bigint not null) without rowid;
CREATE TABLE tenant_rows (
    tenant_id bigint not null, name text not null, value bigint not null, primary key (tenant_id, name)
) without rowid;
CREATE TABLE radius_clients (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), name text not null, name_key text not null,
    network text not null unique, secret bytea not null, all_domains bigint not null, product text not null,
    require_message_authenticator text not null, limit_proxy_state text not null, password_verified bigint not null,
    signed_since bigint, proxy_state_limited_since bigint, created_at bigint not null,
    tls_name text not null default '', tls_fingerprint text not null default '',
    coa_port bigint not null default 3799, unique (tenant_id, name_key)
);
CREATE UNIQUE INDEX radius_clients_tls_name on radius_clients (tls_name) where tls_name <> '';
CREATE UNIQUE INDEX radius_clients_tls_fingerprint on radius_clients (tls_fingerprint) where tls_fingerprint <> '';
CREATE TABLE radius_client_history (
    id integer primary key, tenant_id bigint not null, client_id bigint not null, name text not null, event text not null,
    at bigint not null
);
CREATE INDEX radius_client_history_tenant on radius_client_history (tenant_id, at);
CREATE TABLE radius_client_domains (
    client_id bigint not null references radius_clients (id) on delete cascade, position bigint not null,
    domain_id bigint not null references domains (id), primary key (client_id, position)
);
CREATE TABLE devices (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), ip_address text not null, client_ip text not null,
    nas_identifier text not null, device_name text not null, device_type text not null,
    device_type_certainty text not null, nas_device_type text not null, nas_port_type text not null,
    nas_identifier_key text not null default '', device_type_key text not null default '',
    nas_port_type_key text not null default '', first_seen bigint not null, last_seen bigint not null,
    request_count bigint not null, registrations bigint not null, evidence text not null
);
CREATE UNIQUE INDEX devices_identity on devices (domain_id, ip_address, client_ip, nas_identifier);
CREATE INDEX devices_order on devices (domain_id, id);
CREATE INDEX devices_address on devices (domain_id, ip_address, id);
CREATE INDEX devices_client on devices (domain_id, client_ip, id);
CREATE INDEX devices_type on devices (domain_id, device_type_key, id);
CREATE INDEX devices_medium on devices (domain_id, nas_port_type_key, id);
CREATE INDEX devices_nas on devices (domain_id, nas_identifier_key, id);
CREATE TABLE device_history (
    id integer primary key, domain_id bigint not null, ip_address text not null, client_ip text not null,
    nas_identifier text not null, device_id bigint not null, event text not null, at bigint not null,
    actor text not null
);
CREATE INDEX device_history_deleted on device_history (domain_id, ip_address, client_ip, nas_identifier)
    where event = 'deleted';
CREATE INDEX device_history_device on device_history (domain_id, device_id);
CREATE INDEX device_history_order on device_history (domain_id, id);
CREATE TABLE stations (
    id integer primary key autoincrement, domain_id bigint not null, device_id bigint not null, station text not null, user_name text not null,
    first_seen bigint not null, last_seen bigint not null, request_count bigint not null
);
CREATE UNIQUE INDEX stations_identity on stations (domain_id, device_id, station);
CREATE INDEX stations_order on stations (domain_id, id);
CREATE TABLE accounting_records (
    id integer primary key autoincrement, at bigint not null, domain_id bigint not null, device_id bigint not null, status_type bigint not null,
    session_id bytea not null, user_name text not null, station text not null, attributes bytea not null
);
CREATE INDEX accounting_records_order on accounting_records (domain_id, at);
CREATE TABLE device_posture (
    device_id integer primary key references devices (id) on delete cascade, signed bigint not null, unsigned bigint not null,
    unsigned_proxied bigint not null, last_unsigned bigint, challenges bigint not null,
    challenge_answers bigint not null, retransmit_ms bigint, give_up_ms bigint
);
CREATE TABLE sessions (
    id integer primary key autoincrement, domain_id bigint not null, device_id bigint not null, acct_session_id bytea not null,
    newest bigint not null, user_name text, station text, called_station text, class bytea, multi_session_id bytea,
    nas_port bigint, nas_port_id text, nas_port_type bigint, framed_ip text, framed_ipv6 text,
    framed_ipv6_prefix text, delegated_ipv6_prefix text, session_time bigint not null, input_octets bigint not null,
    output_octets bigint not null, input_packets bigint not null, output_packets bigint not null,
    started bigint not null, first_seen bigint not null, updated bigint not null, stopped bigint,
    state text not null, terminate_cause bigint, records bigint not null, recent bytea not null,
    follows bigint not null
);
CREATE UNIQUE INDEX sessions_identity on sessions (device_id, acct_session_id) where newest = 1;
CREATE INDEX sessions_order on sessions (domain_id, state, id);
CREATE INDEX sessions_device on sessions (domain_id, device_id, state, id);
CREATE INDEX sessions_user on sessions (domain_id, lower(user_name), id);
CREATE INDEX sessions_started on sessions (domain_id, started);
CREATE INDEX sessions_stopped on sessions (domain_id, stopped) where stopped is not null;
CREATE TABLE issued_certificates (
    fingerprint text primary key, name text not null, tenant_id bigint not null references tenants (id)
);
CREATE INDEX issued_certificates_name on issued_certificates (name);
CREATE TABLE certificate_files (name text primary key, content bytea not null, version bigint not null);
CREATE TABLE device_restarts (
    device_id integer primary key, domain_id bigint not null, at bigint not null, after bigint not null
);
CREATE TABLE endpoint_users (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    user_type text not null, credential_type text not null, password bytea, created_at bigint not null,
    updated_at bigint not null, motp bytea, motp_step bigint not null default -1,
    privileged_user text not null default '', ssh_key text not null default '', did text not null default '',
    source text not null default 'Local', assigned bigint not null default 0, unique (domain_id, name_key)
);
CREATE INDEX endpoint_users_order on endpoint_users (domain_id, id);
CREATE INDEX endpoint_users_type on endpoint_users (domain_id, lower(user_type), id);
CREATE INDEX endpoint_users_credential on endpoint_users (domain_id, lower(credential_type), id);
CREATE INDEX endpoint_users_source on endpoint_users (domain_id, lower(source), id);
CREATE INDEX endpoint_users_assigned on endpoint_users (domain_id, assigned, id);
CREATE INDEX endpoint_users_did on endpoint_users (domain_id, did) where did <> '';
CREATE TABLE totp_enrolments (
    user_id integer primary key references endpoint_users (id) on delete cascade, seed bytea not null,
    link_hash text not null unique, wrong_codes bigint not null, expires_at bigint not null
);
CREATE INDEX totp_enrolments_end on totp_enrolments (expires_at);
CREATE TABLE endpoint_instances (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    os_id bigint not null, public_ip text not null, private_ip text not null, host_name text not null,
    status text not null, auth_type text not null, total_users bigint not null default 0,
    total_groups bigint not null default 0, created_at bigint not null, updated_at bigint not null,
    unique (domain_id, name_key)
);
CREATE INDEX endpoint_instances_order on endpoint_instances (domain_id, id);
CREATE INDEX endpoint_instances_host on endpoint_instances (domain_id, lower(host_name), id);
CREATE TABLE endpoint_groups (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    ou text not null, cn text not null, dc text not null, auth_flow text not null, status text not null,
    active bigint not null, users_count bigint not null default 0, created_at bigint not null,
    updated_at bigint not null, unique (domain_id, name_key)
);
CREATE INDEX endpoint_groups_order on endpoint_groups (domain_id, id);
CREATE TABLE endpoint_credential_policies (
    id integer primary key autoincrement, group_id bigint not null unique references endpoint_groups (id) on delete cascade,
    ttl_user text not null, privileged_user text not null, policy_id bigint, home_dir text not null
);
CREATE INDEX endpoint_credential_policies_policy on endpoint_credential_policies (policy_id)
    where policy_id is not null;
CREATE TABLE endpoint_instance_users (
    instance_id bigint not null references endpoint_instances (id),
    user_id bigint not null references endpoint_users (id), primary key (instance_id, user_id)
) without rowid;
CREATE INDEX endpoint_instance_users_user on endpoint_instance_users (user_id, instance_id);
CREATE TABLE endpoint_instance_groups (
    instance_id bigint not null references endpoint_instances (id),
    group_id bigint not null references endpoint_groups (id), primary key (instance_id, group_id)
) without rowid;
CREATE INDEX endpoint_instance_groups_group on endpoint_instance_groups (group_id, instance_id);
CREATE TABLE endpoint_group_users (
    group_id bigint not null references endpoint_groups (id),
    user_id bigint not null references endpoint_users (id), primary key (group_id, user_id)
) without rowid;
CREATE INDEX endpoint_group_users_user on endpoint_group_users (user_id, group_id);
CREATE TABLE password_policies (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), name_key text not null, fields text not null,
    created_at bigint not null, updated_at bigint not null
);
CREATE INDEX password_policies_order on password_policies (tenant_id, id);
CREATE UNIQUE INDEX password_policies_name on password_policies (tenant_id, name_key) where name_key <> '';
CREATE TABLE policy_instances (
    policy_id bigint not null references password_policies (id), instance_id bigint not null,
    primary key (policy_id, instance_id)
) without rowid;
CREATE INDEX policy_instances_instance on policy_instances (instance_id, policy_id);
CREATE TABLE agents (
    instance_id integer primary key references endpoint_instances (id) on delete cascade,
    domain_id bigint not null references domains (id), machine text not null,
    agent_version text not null default '', enrolled_at bigint not null, seen_at bigint not null,
    version bigint not null default 0, digest text not null default '', changed_at bigint not null default 0,
    applied_version bigint not null default 0, applied_at bigint, discovered_at bigint, privileges_at bigint,
    privileges text not null default '{}'
);
CREATE INDEX agents_order on agents (domain_id, instance_id);
CREATE INDEX agents_machine on agents (domain_id, machine);
CREATE TABLE agent_signers (
    domain_id integer primary key references domains (id), public_key bytea not null, private_key bytea not null,
    former_public bytea, former_private bytea
);
CREATE TABLE agent_settings (
    domain_id bigint not null references domains (id), instance_id bigint not null, fields text not null,
    primary key (domain_id, instance_id)
) without rowid;
CREATE TABLE agent_grants (
    instance_id bigint not null references endpoint_instances (id) on delete cascade,
    user_id bigint not null references endpoint_users (id) on delete cascade, group_id bigint not null,
    since bigint not null, primary key (instance_id, user_id, group_id)
) without rowid;
CREATE INDEX agent_grants_user on agent_grants (user_id);
CREATE TABLE agent_hashes (
    user_id integer primary key references endpoint_users (id) on delete cascade, stamp text not null, hash bytea not null,
    made_at bigint not null
);
CREATE TABLE agent_takeovers (
    domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, account text not null,
    at bigint not null, primary key (instance_id, account)
) without rowid;
CREATE INDEX agent_takeovers_name on agent_takeovers (domain_id, account);
CREATE TABLE agent_passwords (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade,
    account text not null, rotation text not null, password bytea not null, hash bytea not null,
    state text not null, stored_at bigint not null, ended_at bigint, unique (instance_id, rotation)
);
CREATE INDEX agent_passwords_account on agent_passwords (instance_id, account, state);
CREATE INDEX agent_passwords_name on agent_passwords (domain_id, account, state);
CREATE TABLE agent_orders (
    id integer primary key autoincrement, instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    accounts text not null, ordered_at bigint not null, ended_at bigint, error text not null default ''
);
CREATE INDEX agent_orders_instance on agent_orders (instance_id, ended_at, id);
CREATE TABLE agent_reports (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, number text not null,
    at bigint not null, version bigint not null, outcome text not null, told text not null,
    unique (instance_id, number)
);
CREATE INDEX agent_reports_domain on agent_reports (domain_id, id);
CREATE TABLE agent_drift (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    subject text not null, detail text not null, put_back bigint not null, first_at bigint not null,
    last_at bigint not null, ended_at bigint, unique (instance_id, kind, subject, detail)
);
CREATE INDEX agent_drift_order on agent_drift (domain_id, id);
CREATE TABLE agent_discovered (
    instance_id bigint not null references endpoint_instances (id) on delete cascade, kind text not null,
    name text not null, user_id bigint references endpoint_users (id) on delete set null, told text not null,
    at bigint not null, primary key (instance_id, kind, name)
) without rowid;
CREATE INDEX agent_discovered_user on agent_discovered (user_id) where user_id is not null;
CREATE TABLE directories (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    kind text not null, account_name text not null, app_url text not null, settings text not null, secret bytea,
    cursor text not null default '', mapping text not null default '{}', created_at bigint not null,
    updated_at bigint not null, unique (domain_id, name_key)
);
CREATE TABLE directory_users (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, uid_key bytea not null, login text not null, name text not null,
    display_name text not null, email text not null, upn text not null, status text not null, cloud bigint not null,
    fields text not null, mapping bytea not null, digest bytea not null, seen bigint not null,
    created_at bigint not null, updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
CREATE INDEX directory_users_order on directory_users (domain_id, id);
CREATE INDEX directory_users_cloud on directory_users (domain_id, cloud, id);
CREATE INDEX directory_users_own on directory_users (directory_id, id);
CREATE INDEX directory_users_dn on directory_users (directory_id, dn_key);
CREATE INDEX directory_users_uid on directory_users (directory_id, uid_key);
CREATE TABLE directory_attributes (user_id integer primary key references directory_users (id), attributes text not null);
CREATE TABLE directory_names (
    domain_id bigint not null, name_key text not null, user_id bigint not null references directory_users (id),
    is_alias bigint not null, primary key (domain_id, name_key, user_id)
) without rowid;
CREATE INDEX directory_names_user on directory_names (user_id);
CREATE TABLE directory_groups (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, name text not null, members bigint not null default 0,
    mapping text not null default '{}', digest bytea not null, seen bigint not null, created_at bigint not null,
    updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
CREATE INDEX directory_groups_order on directory_groups (domain_id, id);
CREATE INDEX directory_groups_own on directory_groups (directory_id, id);
CREATE INDEX directory_groups_dn on directory_groups (directory_id, dn_key);
CREATE INDEX directory_groups_mapped on directory_groups (domain_id, id) where mapping <> '{}';
CREATE TABLE directory_units (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), external_id text not null, dn text not null,
    dn_key bytea not null, name text not null, digest bytea not null, seen bigint not null,
    created_at bigint not null, updated_at bigint not null, unique (domain_id, directory_id, external_id)
);
CREATE INDEX directory_units_own on directory_units (directory_id, id);
CREATE INDEX directory_units_dn on directory_units (directory_id, dn_key);
CREATE TABLE directory_members (
    directory_id bigint not null references directories (id), member_key bytea not null, group_key bytea not null,
    told bigint not null, primary key (directory_id, member_key, group_key, told)
) without rowid;
CREATE INDEX directory_members_group on directory_members (directory_id, group_key, told, member_key);
CREATE TABLE directory_jobs (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    directory_id bigint not null references directories (id), kind text not null, state text not null,
    file_name text not null, file text not null, complete bigint not null, source text not null, secret bytea,
    cursor text not null default '', total bigint not null default 0, added bigint not null default 0,
    updated bigint not null default 0, removed bigint not null default 0, skipped bigint not null default 0,
    failed bigint not null default 0, position bigint not null default 0, errors text not null default '[]',
    message text not null default '', created_at bigint not null, started_at bigint, ended_at bigint,
    removals bigint not null default 0, node_id bigint not null default 0
);
CREATE INDEX directory_jobs_order on directory_jobs (domain_id, id);
CREATE INDEX directory_jobs_own on directory_jobs (directory_id, id);
CREATE INDEX directory_jobs_open on directory_jobs (id) where state in ('QUEUED', 'RUNNING');
CREATE TABLE directory_runs (
    id integer primary key autoincrement, domain_id bigint not null references domains (id),
    directory_id bigint not null unique references directories (id), file text not null, complete bigint not null,
    sequence bigint not null default 0, octets bigint not null default 0, entries bigint not null default 0,
    created_at bigint not null, updated_at bigint not null, node_id bigint not null default 0
);
CREATE TABLE directory_schedules (
    directory_id integer primary key references directories (id), domain_id bigint not null references domains (id),
    every_minutes bigint not null, times text not null, zone text not null, full_every bigint not null,
    runs bigint not null default 0, next_at bigint not null, updated_at bigint not null
);
CREATE INDEX directory_schedules_due on directory_schedules (next_at);
CREATE INDEX directory_schedules_domain on directory_schedules (domain_id);
CREATE TABLE dids (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    did text not null, kind text not null, method text not null, name text not null, description text not null,
    wallet_id bigint, issuer_id bigint, credentials_issued bigint not null default 0, created_at bigint not null,
    updated_at bigint not null, deleted_at bigint, unique (domain_id, did)
);
CREATE INDEX dids_did on dids (did);
CREATE INDEX dids_order on dids (domain_id, deleted_at, id);
CREATE INDEX dids_kind on dids (tenant_id, kind, deleted_at, id);
CREATE INDEX dids_tenant on dids (tenant_id, deleted_at, id);
CREATE INDEX dids_wallet on dids (domain_id, wallet_id, deleted_at, id) where wallet_id is not null;
CREATE INDEX dids_issuer on dids (domain_id, issuer_id, deleted_at, id) where issuer_id is not null;
CREATE TABLE did_keys (
    id integer primary key autoincrement, did_id bigint not null references dids (id) on delete cascade, method_id text not null,
    multikey text not null, sealed bytea, state text not null, created_at bigint not null,
    unique (did_id, method_id)
);
CREATE TABLE credential_schemas (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    author_id bigint not null references dids (id), uuid text not null unique, name text not null,
    content text not null, created_at bigint not null
);
CREATE INDEX credential_schemas_order on credential_schemas (domain_id, id);
CREATE INDEX credential_schemas_author on credential_schemas (author_id, id);
CREATE TABLE status_lists (
    id integer primary key autoincrement, issuer_id bigint not null references dids (id), uuid text not null unique, bits bytea not null,
    used bigint not null default 0, version bigint not null default 0
);
CREATE INDEX status_lists_issuer on status_lists (issuer_id, id);
CREATE TABLE credentials (
    id integer primary key autoincrement, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    issuer_id bigint not null references dids (id), issuer_did text not null,
    schema_id bigint not null references credential_schemas (id), uuid text not null unique, name text not null,
    status text not null, wallet_id bigint, holder_did text not null, epm_username text not null, password bytea,
    list_id bigint not null references status_lists (id), list_index bigint not null, issued_at bigint not null,
    expires_at bigint, revoked_at bigint, updated_at bigint not null, place bigint not null default 0,
    unique (list_id, list_index)
);
CREATE INDEX credentials_wallet on credentials (wallet_id, status, id) where wallet_id is not null;
CREATE INDEX credentials_holder on credentials (domain_id, holder_did, id);
CREATE INDEX credentials_user on credentials (domain_id, epm_username, id) where epm_username <> '';
CREATE UNIQUE INDEX credentials_place on credentials (domain_id, place);
CREATE TABLE credential_tokens (credential_id integer primary key references credentials (id), jwt text not null, proof text);
CREATE TABLE wallets (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), username text not null, email text not null,
    email_key text not null, url text not null, key_hash text not null, public_key bytea not null,
    token_id bigint not null unique references access_tokens (id), created_at bigint not null,
    unique (domain_id, email_key)
);
CREATE INDEX wallets_order on wallets (domain_id, id);
CREATE INDEX wallets_email on wallets (email_key);
CREATE TABLE credential_users (
    credential_id integer primary key references credentials (id), domain_id bigint not null references domains (id),
    name_key text not null
);
CREATE INDEX credential_users_name on credential_users (domain_id, name_key, credential_id);
CREATE TABLE presentation_requests (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), wallet_id bigint not null references wallets (id),
    holder_did text not null, issuer_did text not null, schema_id bigint not null, nonce text not null,
    definition text not null, purpose text not null, endpoint text not null, challenge_id text unique,
    status text not null, credential_id bigint, created_at bigint not null, expires_at bigint not null,
    answered_at bigint
);
CREATE INDEX presentation_requests_open on presentation_requests (wallet_id, id) where status = 'open';
CREATE INDEX presentation_requests_holder on presentation_requests (domain_id, holder_did, expires_at)
    where status = 'open';
CREATE INDEX presentation_requests_issuer on presentation_requests (domain_id, issuer_did, expires_at)
    where status = 'open';
CREATE INDEX presentation_requests_expired on presentation_requests (expires_at);
CREATE TABLE endpoint_user_wallets (
    user_id bigint not null references endpoint_users (id), wallet_id bigint not null references wallets (id),
    primary key (user_id, wallet_id)
) without rowid;
CREATE INDEX endpoint_user_wallets_wallet on endpoint_user_wallets (wallet_id);
CREATE TABLE endpoint_user_credentials (
    user_id bigint not null references endpoint_users (id), credential_id bigint not null,
    credential_type text not null, primary key (user_id, credential_id)
) without rowid;
CREATE INDEX endpoint_user_credentials_credential on endpoint_user_credentials (credential_id);
CREATE TABLE events (
    id integer primary key autoincrement, at bigint not null, domain_id bigint not null, user_name text not null, ip_address text not null,
    client_ip text not null, device_id bigint not null, device_name text not null, station text not null,
    method text not null, factor text not null, decision text not null, applied_decision text not null,
    would_have_been text not null, reason text not null, latency_us bigint not null, service_type bigint,
    machine bigint, node_id bigint not null default 0
);
CREATE INDEX events_order on events (domain_id, at);
CREATE TABLE answers (id integer primary key, at bigint not null, packed bytea not null);
CREATE INDEX answers_at on answers (at);
CREATE TABLE mfa_providers (
    domain_id integer primary key references domains (id), provider text not null, fields bytea not null,
    timeout_s bigint not null, changed_at bigint not null
);
CREATE TABLE challenges (
    id text primary key, domain_id bigint not null, expires_at bigint not null, session text not null
);
CREATE INDEX challenges_expired on challenges (expires_at);
CREATE TABLE login_rules (
    id integer primary key autoincrement, domain_id bigint not null references domains (id), name text not null, priority bigint not null,
    enabled bigint not null, action text not null, definition text not null, attributes bytea not null,
    created_at bigint not null, updated_at bigint not null
);
CREATE INDEX login_rules_order on login_rules (domain_id, id);
CREATE TABLE first_factors (
    domain_id bigint not null references domains (id) on delete cascade, kind text not null, fields bytea not null,
    changed_at bigint not null, primary key (domain_id, kind)
) without rowid;
CREATE TABLE lockouts (
    id integer primary key autoincrement, domain_id bigint not null, kind text not null, name_key text not null, name text not null,
    since bigint not null, until bigint not null, failures bigint not null, unique (domain_id, kind, name_key)
);
CREATE INDEX lockouts_until on lockouts (until);
CREATE TABLE revocations (
    id integer primary key autoincrement, domain_id bigint not null, user_name text not null, reason text not null, at bigint not null
);
CREATE TABLE bypass_stations (
    id integer primary key autoincrement, domain_id bigint not null, station text not null, name text not null, added_at bigint not null,
    unique (domain_id, station)
);
CREATE TABLE outlet_places (
    name text not null, type text not null, last_id bigint not null, primary key (name, type)
);
CREATE TRIGGER events_append_only before update on events begin select raise(abort, 'events are append-only'); end;
CREATE TRIGGER accounting_records_append_only before update on accounting_records begin select raise(abort, 'accounting records are append-only'); end;
CREATE TRIGGER audit_trail_append_only before update on audit_trail begin select raise(abort, 'the audit trail is append-only'); end;
CREATE TRIGGER audit_trail_total after delete on audit_trail begin update audit_totals set value = value - 1 where tenant_id = old.tenant_id and domain_id = coalesce(old.domain_id, 0); end;
CREATE TRIGGER radius_clients_children before delete on radius_clients begin delete from radius_client_domains where client_id = old.id; end;
CREATE TRIGGER endpoint_instances_children before delete on endpoint_instances begin delete from agent_orders where instance_id = old.id; delete from agent_discovered where instance_id = old.id; delete from agent_grants where instance_id = old.id; end;
CREATE TRIGGER access_tokens_access_tokens_added after insert on access_tokens when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'access_tokens', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: access_tokens') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'access_tokens' and r.value > l.most; end;
CREATE TRIGGER access_tokens_access_tokens_deleted after delete on access_tokens when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'access_tokens'; end;
CREATE TRIGGER agent_orders_agent_orders_added after insert on agent_orders when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'agent_orders', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: agent_orders') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) and r.name = 'agent_orders' and r.value > l.most; end;
CREATE TRIGGER agent_orders_agent_orders_deleted after delete on agent_orders when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = old.instance_id)) and name = 'agent_orders'; end;
CREATE TRIGGER agent_grants_agent_grants_added after insert on agent_grants when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'agent_grants', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: agent_grants') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) and r.name = 'agent_grants' and r.value > l.most; end;
CREATE TRIGGER agent_grants_agent_grants_deleted after delete on agent_grants when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = old.instance_id)) and name = 'agent_grants'; end;
CREATE TRIGGER api_keys_api_keys_added after insert on api_keys when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'api_keys', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: api_keys') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'api_keys' and r.value > l.most; end;
CREATE TRIGGER api_keys_api_keys_deleted after delete on api_keys when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'api_keys'; end;
CREATE TRIGGER api_key_machines_api_key_machines_added after insert on api_key_machines when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'api_key_machines', 1 from (select (select tenant_id from domains where id = (select domain_id from api_keys where id = new.key_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: api_key_machines') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from api_keys where id = new.key_id)) and r.name = 'api_key_machines' and r.value > l.most; end;
CREATE TRIGGER api_key_machines_api_key_machines_deleted after delete on api_key_machines when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from api_keys where id = old.key_id)) and name = 'api_key_machines'; end;
CREATE TRIGGER bypass_stations_bypass_stations_added after insert on bypass_stations when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'bypass_stations', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: bypass_stations') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'bypass_stations' and r.value > l.most; end;
CREATE TRIGGER bypass_stations_bypass_stations_deleted after delete on bypass_stations when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'bypass_stations'; end;
CREATE TRIGGER radius_client_domains_client_domains_added after insert on radius_client_domains when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'client_domains', 1 from (select (select tenant_id from radius_clients where id = new.client_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: client_domains') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from radius_clients where id = new.client_id) and r.name = 'client_domains' and r.value > l.most; end;
CREATE TRIGGER radius_client_domains_client_domains_deleted after delete on radius_client_domains when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from radius_clients where id = old.client_id) and name = 'client_domains'; end;
CREATE TRIGGER credentials_credentials_added after insert on credentials when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'credentials', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: credentials') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'credentials' and r.value > l.most; end;
CREATE TRIGGER credentials_credentials_deleted after delete on credentials when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'credentials'; end;
CREATE TRIGGER devices_devices_added after insert on devices when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'devices', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; end;
CREATE TRIGGER devices_devices_deleted after delete on devices when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'devices'; end;
CREATE TRIGGER did_keys_did_keys_added after insert on did_keys when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'did_keys', 1 from (select (select tenant_id from dids where id = new.did_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: did_keys') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from dids where id = new.did_id) and r.name = 'did_keys' and r.value > l.most; end;
CREATE TRIGGER did_keys_did_keys_deleted after delete on did_keys when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from dids where id = old.did_id) and name = 'did_keys'; end;
CREATE TRIGGER dids_dids_added after insert on dids when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'dids', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: dids') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'dids' and r.value > l.most; end;
CREATE TRIGGER dids_dids_deleted after delete on dids when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'dids'; end;
CREATE TRIGGER directories_directories_added after insert on directories when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'directories', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: directories') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'directories' and r.value > l.most; end;
CREATE TRIGGER directories_directories_deleted after delete on directories when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'directories'; end;
CREATE TRIGGER directory_groups_directory_groups_added after insert on directory_groups when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'directory_groups', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: directory_groups') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'directory_groups' and r.value > l.most; end;
CREATE TRIGGER directory_groups_directory_groups_deleted after delete on directory_groups when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'directory_groups'; end;
CREATE TRIGGER directory_members_directory_members_added after insert on directory_members when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'directory_members', 1 from (select (select tenant_id from domains where id = (select domain_id from directories where id = new.directory_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: directory_members') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from directories where id = new.directory_id)) and r.name = 'directory_members' and r.value > l.most; end;
CREATE TRIGGER directory_members_directory_members_deleted after delete on directory_members when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from directories where id = old.directory_id)) and name = 'directory_members'; end;
CREATE TRIGGER directory_units_directory_units_added after insert on directory_units when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'directory_units', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: directory_units') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'directory_units' and r.value > l.most; end;
CREATE TRIGGER directory_units_directory_units_deleted after delete on directory_units when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'directory_units'; end;
CREATE TRIGGER directory_users_directory_users_added after insert on directory_users when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'directory_users', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: directory_users') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'directory_users' and r.value > l.most; end;
CREATE TRIGGER directory_users_directory_users_deleted after delete on directory_users when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'directory_users'; end;
CREATE TRIGGER agent_discovered_discovered_accounts_added after insert on agent_discovered when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'discovered_accounts', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: discovered_accounts') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) and r.name = 'discovered_accounts' and r.value > l.most; end;
CREATE TRIGGER agent_discovered_discovered_accounts_deleted after delete on agent_discovered when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = old.instance_id)) and name = 'discovered_accounts'; end;
CREATE TRIGGER domains_domains_added after insert on domains when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'domains', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: domains') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'domains' and r.value > l.most; end;
CREATE TRIGGER domains_domains_deleted after delete on domains when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'domains'; end;
CREATE TRIGGER endpoint_instance_users_endpoint_assignments_added after insert on endpoint_instance_users when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_assignments', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) and r.name = 'endpoint_assignments' and r.value > l.most; end;
CREATE TRIGGER endpoint_instance_users_endpoint_assignments_deleted after delete on endpoint_instance_users when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = old.instance_id)) and name = 'endpoint_assignments'; end;
CREATE TRIGGER endpoint_instance_groups_endpoint_assignments_added after insert on endpoint_instance_groups when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_assignments', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = new.instance_id)) and r.name = 'endpoint_assignments' and r.value > l.most; end;
CREATE TRIGGER endpoint_instance_groups_endpoint_assignments_deleted after delete on endpoint_instance_groups when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_instances where id = old.instance_id)) and name = 'endpoint_assignments'; end;
CREATE TRIGGER endpoint_group_users_endpoint_assignments_added after insert on endpoint_group_users when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_assignments', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_groups where id = new.group_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_groups where id = new.group_id)) and r.name = 'endpoint_assignments' and r.value > l.most; end;
CREATE TRIGGER endpoint_group_users_endpoint_assignments_deleted after delete on endpoint_group_users when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_groups where id = old.group_id)) and name = 'endpoint_assignments'; end;
CREATE TRIGGER endpoint_groups_endpoint_groups_added after insert on endpoint_groups when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_groups', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_groups') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'endpoint_groups' and r.value > l.most; end;
CREATE TRIGGER endpoint_groups_endpoint_groups_deleted after delete on endpoint_groups when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'endpoint_groups'; end;
CREATE TRIGGER endpoint_instances_endpoint_instances_added after insert on endpoint_instances when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_instances', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_instances') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'endpoint_instances' and r.value > l.most; end;
CREATE TRIGGER endpoint_instances_endpoint_instances_deleted after delete on endpoint_instances when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'endpoint_instances'; end;
CREATE TRIGGER endpoint_users_endpoint_users_added after insert on endpoint_users when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'endpoint_users', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: endpoint_users') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'endpoint_users' and r.value > l.most; end;
CREATE TRIGGER endpoint_users_endpoint_users_deleted after delete on endpoint_users when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'endpoint_users'; end;
CREATE TRIGGER agent_passwords_escrowed_passwords_added after insert on agent_passwords when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'escrowed_passwords', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: escrowed_passwords') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'escrowed_passwords' and r.value > l.most; end;
CREATE TRIGGER agent_passwords_escrowed_passwords_deleted after delete on agent_passwords when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'escrowed_passwords'; end;
CREATE TRIGGER login_rules_login_rules_added after insert on login_rules when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'login_rules', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: login_rules') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'login_rules' and r.value > l.most; end;
CREATE TRIGGER login_rules_login_rules_deleted after delete on login_rules when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'login_rules'; end;
CREATE TRIGGER password_policies_password_policies_added after insert on password_policies when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'password_policies', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: password_policies') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'password_policies' and r.value > l.most; end;
CREATE TRIGGER password_policies_password_policies_deleted after delete on password_policies when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'password_policies'; end;
CREATE TRIGGER policy_instances_policy_assignments_added after insert on policy_instances when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'policy_assignments', 1 from (select (select tenant_id from password_policies where id = new.policy_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: policy_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from password_policies where id = new.policy_id) and r.name = 'policy_assignments' and r.value > l.most; end;
CREATE TRIGGER policy_instances_policy_assignments_deleted after delete on policy_instances when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from password_policies where id = old.policy_id) and name = 'policy_assignments'; end;
CREATE TRIGGER presentation_requests_presentation_requests_added after insert on presentation_requests when new.challenge_id is null begin insert into tenant_rows (tenant_id, name, value) select tenant, 'presentation_requests', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: presentation_requests') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'presentation_requests' and r.value > l.most; end;
CREATE TRIGGER presentation_requests_presentation_requests_deleted after delete on presentation_requests when old.challenge_id is null begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'presentation_requests'; end;
CREATE TRIGGER radius_clients_radius_clients_added after insert on radius_clients when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'radius_clients', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: radius_clients') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'radius_clients' and r.value > l.most; end;
CREATE TRIGGER radius_clients_radius_clients_deleted after delete on radius_clients when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'radius_clients'; end;
CREATE TRIGGER credential_schemas_schemas_added after insert on credential_schemas when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'schemas', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: schemas') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'schemas' and r.value > l.most; end;
CREATE TRIGGER credential_schemas_schemas_deleted after delete on credential_schemas when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'schemas'; end;
CREATE TRIGGER stations_stations_added after insert on stations when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'stations', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; end;
CREATE TRIGGER stations_stations_deleted after delete on stations when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'stations'; end;
CREATE TRIGGER agent_takeovers_taken_over_accounts_added after insert on agent_takeovers when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'taken_over_accounts', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: taken_over_accounts') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'taken_over_accounts' and r.value > l.most; end;
CREATE TRIGGER agent_takeovers_taken_over_accounts_deleted after delete on agent_takeovers when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'taken_over_accounts'; end;
CREATE TRIGGER directory_jobs_waiting_imports_added after insert on directory_jobs when new.state in ('QUEUED', 'RUNNING') begin insert into tenant_rows (tenant_id, name, value) select tenant, 'waiting_imports', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: waiting_imports') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'waiting_imports' and r.value > l.most; end;
CREATE TRIGGER directory_jobs_waiting_imports_deleted after delete on directory_jobs when old.state in ('QUEUED', 'RUNNING') begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'waiting_imports'; end;
CREATE TRIGGER directory_jobs_waiting_imports_gained after update of state on directory_jobs when new.state in ('QUEUED', 'RUNNING') and not old.state in ('QUEUED', 'RUNNING') begin insert into tenant_rows (tenant_id, name, value) select tenant, 'waiting_imports', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: waiting_imports') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'waiting_imports' and r.value > l.most; end;
CREATE TRIGGER directory_jobs_waiting_imports_lost after update of state on directory_jobs when old.state in ('QUEUED', 'RUNNING') and not new.state in ('QUEUED', 'RUNNING') begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'waiting_imports'; end;
CREATE TRIGGER endpoint_user_wallets_wallet_assignments_added after insert on endpoint_user_wallets when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'wallet_assignments', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_users where id = new.user_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: wallet_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_users where id = new.user_id)) and r.name = 'wallet_assignments' and r.value > l.most; end;
CREATE TRIGGER endpoint_user_wallets_wallet_assignments_deleted after delete on endpoint_user_wallets when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_users where id = old.user_id)) and name = 'wallet_assignments'; end;
CREATE TRIGGER endpoint_user_credentials_wallet_assignments_added after insert on endpoint_user_credentials when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'wallet_assignments', 1 from (select (select tenant_id from domains where id = (select domain_id from endpoint_users where id = new.user_id)) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: wallet_assignments') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_users where id = new.user_id)) and r.name = 'wallet_assignments' and r.value > l.most; end;
CREATE TRIGGER endpoint_user_credentials_wallet_assignments_deleted after delete on endpoint_user_credentials when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = (select domain_id from endpoint_users where id = old.user_id)) and name = 'wallet_assignments'; end;
CREATE TRIGGER wallets_wallets_added after insert on wallets when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'wallets', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; select raise(abort, 'limit: wallets') from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'wallets' and r.value > l.most; end;
CREATE TRIGGER wallets_wallets_deleted after delete on wallets when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'wallets'; end;
CREATE TRIGGER agent_reports_agent_reports_added after insert on agent_reports when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'agent_reports', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from agent_reports where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'agent_reports' and r.value > l.most) then (select min(id) from (select (select min(t.id) from agent_reports t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; delete from agent_reports where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'agent_reports' and r.value > l.most) then (select min(id) from (select (select min(t.id) from agent_reports t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; end;
CREATE TRIGGER agent_reports_agent_reports_deleted after delete on agent_reports when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'agent_reports'; end;
CREATE TRIGGER audit_trail_audit_entries_added after insert on audit_trail when new.tenant_id > 0 begin insert into tenant_rows (tenant_id, name, value) select tenant, 'audit_entries', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from audit_trail where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'audit_entries' and r.value > l.most) then (select id from audit_trail where tenant_id = new.tenant_id order by at limit 1) end; delete from audit_trail where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'audit_entries' and r.value > l.most) then (select id from audit_trail where tenant_id = new.tenant_id order by at limit 1) end; end;
CREATE TRIGGER audit_trail_audit_entries_deleted after delete on audit_trail when old.tenant_id > 0 begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'audit_entries'; end;
CREATE TRIGGER radius_client_history_client_history_added after insert on radius_client_history when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'client_history', 1 from (select new.tenant_id as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from radius_client_history where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'client_history' and r.value > l.most) then (select id from radius_client_history where tenant_id = new.tenant_id order by at limit 1) end; delete from radius_client_history where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = new.tenant_id and r.name = 'client_history' and r.value > l.most) then (select id from radius_client_history where tenant_id = new.tenant_id order by at limit 1) end; end;
CREATE TRIGGER radius_client_history_client_history_deleted after delete on radius_client_history when true begin update tenant_rows set value = value - 1 where tenant_id = old.tenant_id and name = 'client_history'; end;
CREATE TRIGGER device_history_device_history_added after insert on device_history when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'device_history', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from device_history where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'device_history' and r.value > l.most) then (select min(id) from (select (select min(t.id) from device_history t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; delete from device_history where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'device_history' and r.value > l.most) then (select min(id) from (select (select min(t.id) from device_history t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; end;
CREATE TRIGGER device_history_device_history_deleted after delete on device_history when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'device_history'; end;
CREATE TRIGGER agent_drift_drift_reports_added after insert on agent_drift when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'drift_reports', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from agent_drift where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'drift_reports' and r.value > l.most) then (select min(id) from (select (select min(t.id) from agent_drift t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; delete from agent_drift where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'drift_reports' and r.value > l.most) then (select min(id) from (select (select min(t.id) from agent_drift t where t.domain_id = d.id and not (false)) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; end;
CREATE TRIGGER agent_drift_drift_reports_deleted after delete on agent_drift when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'drift_reports'; end;
CREATE TRIGGER directory_jobs_import_jobs_added after insert on directory_jobs when true begin insert into tenant_rows (tenant_id, name, value) select tenant, 'import_jobs', 1 from (select (select tenant_id from domains where id = new.domain_id) as tenant) where tenant is not null on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; delete from directory_jobs where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'import_jobs' and r.value > l.most) then (select min(id) from (select (select min(t.id) from directory_jobs t where t.domain_id = d.id and not (t.state in ('QUEUED', 'RUNNING'))) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; delete from directory_jobs where id = case when exists (select 1 from tenant_rows r join limits l on l.name = r.name where r.tenant_id = (select tenant_id from domains where id = new.domain_id) and r.name = 'import_jobs' and r.value > l.most) then (select min(id) from (select (select min(t.id) from directory_jobs t where t.domain_id = d.id and not (t.state in ('QUEUED', 'RUNNING'))) as id from domains d where d.tenant_id = (select tenant_id from domains where id = new.domain_id))) end; end;
CREATE TRIGGER directory_jobs_import_jobs_deleted after delete on directory_jobs when true begin update tenant_rows set value = value - 1 where tenant_id = (select tenant_id from domains where id = old.domain_id) and name = 'import_jobs'; end;
CREATE VIRTUAL TABLE devices_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE directory_groups_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE directory_users_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE dids_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE endpoint_groups_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE endpoint_instances_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE endpoint_users_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
CREATE VIRTUAL TABLE wallets_search using fts5 (texts, tokenize = 'trigram case_sensitive 1', columnsize = 0);
insert into _sqlite_migrations values (1, 'sallyport', 'm0001_baseline', '2026-11-23 00:00:00+00:00');
insert into config_version values (1, 1);
insert into organizations values (1, 'Example', 0);
insert into tenants values (1, 1, 1, 'Example', 0);
insert into domains (id, tenant_id, name, directory_name, enforcement_mode, fallback_action, first_factor, status,
    realms, created_at, name_key) values (1, 1, 'corp', '', 'monitor', 'deny', 'local', 'active', '', 0, 'corp');

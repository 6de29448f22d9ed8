-- Decentralized identity: DIDs, schemas, credentials, wallets, presentations.

create table dids (
    id {id}, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    did text not null, kind text not null, method text not null, name text not null, description text not null,
    wallet_id bigint, issuer_id bigint, credentials_issued bigint not null default 0, created_at bigint not null,
    updated_at bigint not null, deleted_at bigint, unique (domain_id, did)
);
create index dids_did on dids (did);
create index dids_order on dids (domain_id, deleted_at, id);
create index dids_kind on dids (tenant_id, kind, deleted_at, id);
create index dids_tenant on dids (tenant_id, deleted_at, id);
create index dids_wallet on dids (domain_id, wallet_id, deleted_at, id) where wallet_id is not null;
create index dids_issuer on dids (domain_id, issuer_id, deleted_at, id) where issuer_id is not null;

create table did_keys (
    id {id}, did_id bigint not null references dids (id) on delete cascade, method_id text not null,
    multikey text not null, sealed bytea, state text not null, created_at bigint not null,
    unique (did_id, method_id)
);

create table credential_schemas (
    id {id}, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    author_id bigint not null references dids (id), uuid text not null unique, name text not null,
    content text not null, created_at bigint not null
);
create index credential_schemas_order on credential_schemas (domain_id, id);
create index credential_schemas_author on credential_schemas (author_id, id);

create table status_lists (
    id {id}, issuer_id bigint not null references dids (id), uuid text not null unique, bits bytea not null,
    used bigint not null default 0, version bigint not null default 0
);
create index status_lists_issuer on status_lists (issuer_id, id);

create table credentials (
    id {id}, tenant_id bigint not null references tenants (id), domain_id bigint not null references domains (id),
    issuer_id bigint not null references dids (id), issuer_did text not null,
    schema_id bigint not null references credential_schemas (id), uuid text not null unique, name text not null,
    status text not null, wallet_id bigint, holder_did text not null, epm_username text not null, password bytea,
    list_id bigint not null references status_lists (id), list_index bigint not null, issued_at bigint not null,
    expires_at bigint, revoked_at bigint, updated_at bigint not null, place bigint not null default 0,
    unique (list_id, list_index)
);
create index credentials_wallet on credentials (wallet_id, status, id) where wallet_id is not null;
create index credentials_holder on credentials (domain_id, holder_did, id);
create index credentials_user on credentials (domain_id, epm_username, id) where epm_username <> '';
create unique index credentials_place on credentials (domain_id, place);

create table credential_tokens (credential_id {rowid} references credentials (id), jwt text not null, proof text);

create table wallets (
    id {id}, domain_id bigint not null references domains (id), username text not null, email text not null,
    email_key text not null, url text not null, key_hash text not null, public_key bytea not null,
    token_id bigint not null unique references access_tokens (id), created_at bigint not null,
    unique (domain_id, email_key)
);
create index wallets_order on wallets (domain_id, id);
create index wallets_email on wallets (email_key);

create table credential_users (
    credential_id {rowid} references credentials (id), domain_id bigint not null references domains (id),
    name_key text not null
);
create index credential_users_name on credential_users (domain_id, name_key, credential_id);

create table presentation_requests (
    id {id}, domain_id bigint not null references domains (id), wallet_id bigint not null references wallets (id),
    holder_did text not null, issuer_did text not null, schema_id bigint not null, nonce text not null,
    definition text not null, purpose text not null, endpoint text not null, challenge_id text unique,
    status text not null, credential_id bigint, created_at bigint not null, expires_at bigint not null,
    answered_at bigint
);
create index presentation_requests_open on presentation_requests (wallet_id, id) where status = 'open';
create index presentation_requests_holder on presentation_requests (domain_id, holder_did, expires_at)
    where status = 'open';
create index presentation_requests_issuer on presentation_requests (domain_id, issuer_did, expires_at)
    where status = 'open';
create index presentation_requests_expired on presentation_requests (expires_at);

create table endpoint_user_wallets (
    user_id bigint not null references endpoint_users (id), wallet_id bigint not null references wallets (id),
    primary key (user_id, wallet_id)
) {clustered};
create index endpoint_user_wallets_wallet on endpoint_user_wallets (wallet_id);

create table endpoint_user_credentials (
    user_id bigint not null references endpoint_users (id), credential_id bigint not null,
    credential_type text not null, primary key (user_id, credential_id)
) {clustered};
create index endpoint_user_credentials_credential on endpoint_user_credentials (credential_id);

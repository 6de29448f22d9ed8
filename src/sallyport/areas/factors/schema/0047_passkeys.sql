-- Passkeys of people. user_key: the user name in the form for comparison. user_handle: random octets that name the person
-- to authenticators, the same for all passkeys of a person. rp_id: the host for which the passkey was made. public_key:
-- the COSE key in CBOR. sign_count: 0 if the authenticator does not count. transports: names, separated by commas.
-- passkey_challenges: the open challenges. binding_hash: the SHA-256 of the purpose, the browser and the login.

create table passkeys (
    id {id}, domain_id bigint not null references domains (id), user_key text not null, user_name text not null,
    user_handle bytea not null, rp_id text not null, credential_id bytea not null, public_key bytea not null,
    sign_count bigint not null, backup_eligible bigint not null, backed_up bigint not null, transports text not null,
    name text not null, created_at bigint not null, last_used_at bigint, unique (domain_id, credential_id)
);
create index passkeys_user on passkeys (domain_id, user_key);
create table passkey_challenges (
    binding_hash text not null primary key, domain_id bigint not null references domains (id), user_key text not null,
    user_handle bytea not null, rp_id text not null, challenge bytea not null, expires_at bigint not null
);
create index passkey_challenges_user on passkey_challenges (domain_id, user_key);
create index passkey_challenges_expiry on passkey_challenges (expires_at);

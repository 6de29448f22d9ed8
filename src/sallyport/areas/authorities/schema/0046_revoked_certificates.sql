-- The certificates that an OCSP responder has called revoked. issuer_key: the SHA-256 of the issuer's key, in hex. serial: the
-- serial number, in hex. text: what the responder has answered. this_update: the time of the answer. until: the end of a
-- hold, or a time that never comes.
-- certified_users.name_key: the name of the user as endpoint users have it, so that the rows of a deleted user are found;
-- empty for rows of earlier builds.

alter table certified_users add column name_key text not null default '';
create index certified_users_name on certified_users (domain_id, name_key);
create table revoked_certificates (
    id {id}, tenant_id bigint not null, authority_id bigint not null, issuer_key text not null, serial text not null,
    text text not null, this_update bigint not null, until bigint not null, stored_at bigint not null,
    unique (authority_id, issuer_key, serial)
);
create index revoked_certificates_tenant on revoked_certificates (tenant_id, stored_at);

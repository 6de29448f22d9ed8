-- The users who have logged in with certificates of tenants' authorities, so that their sessions end when a certificate is
-- revoked. issuer_key: the SHA-256 of the issuer's key, in hex. serial: the serial number, in hex. responder: the address
-- of the OCSP responder, or empty. asked_until: when the responder is asked again. until: the end of the certificate.

create table certified_users (
    id {id}, domain_id bigint not null, authority_id bigint not null, issuer_key text not null, serial text not null,
    user_name text not null, responder text not null, asked_until bigint not null, seen_at bigint not null,
    until bigint not null, unique (domain_id, authority_id, issuer_key, serial, user_name)
);
create index certified_users_authority on certified_users (authority_id, id);
create index certified_users_asked on certified_users (asked_until) where responder <> '';
create index certified_users_seen on certified_users (seen_at);

-- People who sign in to the web console through an identity provider.

create table identities (
    id {id}, issuer text not null, subject text not null, name text not null, role text not null,
    tenant_id bigint references tenants (id), member_of text not null, created_at bigint not null,
    signed_in_at bigint not null, unique (issuer, subject)
);

alter table console_sessions add column identity_id bigint references identities (id);
alter table console_sessions add column id_token bytea;
create index console_sessions_identity on console_sessions (identity_id);

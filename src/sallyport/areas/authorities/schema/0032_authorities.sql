-- Authorities of a tenant, which sign client certificates for its domains. certificates: the bundle in PEM. anchors: the
-- facts of each certificate of the bundle, as JSON. settings: scope, names and revocation, as JSON. version: grows with
-- each change, so that resumed TLS sessions notice the change.
-- authority_domains: the domains of an authority.

create table authorities (
    id {id}, tenant_id bigint not null references tenants (id), name text not null, name_key text not null,
    certificates text not null, anchors text not null, settings text not null, version bigint not null,
    updated_at bigint not null, unique (tenant_id, name_key)
);
create table authority_domains (
    domain_id bigint not null references domains (id), authority_id bigint not null references authorities (id),
    primary key (domain_id, authority_id)
);
create index authority_domains_authority on authority_domains (authority_id);

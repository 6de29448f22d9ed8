-- The revocation lists of authorities, by their addresses. issuer: the certificate in DER for which a login has looked up
-- the list, or empty. list: the verified list without its entries, as JSON; empty before there is one. version: grows
-- with each new list. next_at: when the leader fetches the list again.
-- revocation_entries: the entries of a list in parts, 21 octets each. Parts of another version than that of the list
-- are being written, or are left over.

create table revocation_lists (
    id {id}, authority_id bigint not null, tenant_id bigint not null, address text not null, issuer bytea not null,
    wanted_at bigint not null, checked_at bigint not null default 0, next_at bigint not null default 0,
    failures bigint not null default 0, error text not null default '', version bigint not null default 0,
    list text not null default '', unique (authority_id, address)
);
create table revocation_entries (
    list_id bigint not null, version bigint not null, part bigint not null, content bytea not null,
    primary key (list_id, version, part)
);

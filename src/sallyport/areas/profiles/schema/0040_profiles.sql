-- Profiles of networks. settings: the networks, the method and the server, as JSON. uuid: the namespace of the UUIDs in
-- the files. link_hash: the SHA-256 of the last part of the link; null if the profile has no link.

create table network_profiles (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    uuid text not null, settings text not null, link_hash text unique, link_expires_at bigint,
    updated_at bigint not null, unique (domain_id, name_key)
);

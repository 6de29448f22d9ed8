-- Server certificates of domains for EAP. realm: the realm of the outer identity for which the certificate is; empty for
-- all realms of the domain. realm_key: the realm, case-folded. chain: the server's certificate and those that are sent
-- with it, in PEM. private_key: sealed. changed_at: the time of the last change, in microseconds.

create table server_certificates (
    domain_id bigint not null references domains (id), realm_key text not null, realm text not null,
    chain text not null, private_key bytea not null, changed_at bigint not null, primary key (domain_id, realm_key)
);

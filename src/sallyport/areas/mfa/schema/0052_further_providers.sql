-- MFA providers of a domain beside its default one, which is in `mfa_providers`. Login rules name them. A domain has each
-- kind of provider once, in one of the two tables. The columns are those of `mfa_providers`.

create table further_providers (
    domain_id bigint not null references domains (id), provider text not null, fields bytea not null,
    timeout_s bigint not null, changed_at bigint not null, primary key (domain_id, provider)
);

-- The realms of domains, with their forms for comparison. Folding a hostile name takes 0.4 ms, so a name is folded only
-- when it is written. A domain's name is one of its realms.

create table domain_realms (
    domain_id bigint not null references domains (id), realm text not null, realm_key text not null,
    tenant_id bigint not null, primary key (domain_id, realm)
) {clustered};
create index domain_realms_key on domain_realms (tenant_id, realm_key);
insert into domain_realms (domain_id, realm, realm_key, tenant_id)
select distinct domains.id, value, fold(value), tenant_id from domains, json_each(
    '["' || replace(replace(replace(
        name || case when realms = '' then '' else '
' || realms end, '\', '\\'), '"', '\"'), '
', '","') || '"]'
) where removed_at is null;

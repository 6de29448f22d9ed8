-- The issuers or the holders of a domain. Without the index, a page of few issuers reads all holders of the domain.

create index dids_domain_kind on dids (domain_id, kind, deleted_at, id);

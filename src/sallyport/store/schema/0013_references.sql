-- Indexes of references. Without them, each deletion of a domain, DID, schema or wallet, and each renewal of an API key,
-- reads the rows of all tenants that may refer to it.

create index radius_client_domains_domain on radius_client_domains (domain_id);
create index directory_runs_domain on directory_runs (domain_id);
create index credentials_issuer on credentials (issuer_id);
create index credentials_schema on credentials (schema_id);
create index presentation_requests_wallet on presentation_requests (wallet_id);
create index api_keys_successors on api_keys (successor_of) where successor_of is not null;
-- A tenant may have a million tokens of wallets. The list of tokens leaves them out.
create index access_tokens_people on access_tokens (tenant_id, id) where role <> 'wallet';

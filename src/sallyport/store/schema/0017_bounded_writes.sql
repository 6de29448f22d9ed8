-- Indexes for writes of bounded length. They find the ended API keys of a domain, and the unfinished renaming of an entry
-- of a directory, without reading the other keys or memberships.

create index api_keys_ended on api_keys
    (domain_id, (case when revoked_at < expires_at then revoked_at else expires_at end));
create index directory_members_moving on directory_members (directory_id, told) where told > 1;

-- The sessions of a user that are over, by the case-folded User-Name, for limits of parallel sessions.

create index sessions_over on sessions (domain_id, user_key, id) where state <> 'live';

-- Limits of parallel sessions: what the transaction of an Access-Accept reads and writes. `user_key` is the case-folded
-- User-Name; sessions get it with their next record. A row of `session_limits` also serves as the lock of its user.

alter table sessions add column user_key text;
create index sessions_live on sessions (domain_id, user_key, id) where state = 'live';

create table session_limits (
    domain_id bigint not null, user_key text not null, at bigint not null, admitted text not null,
    primary key (domain_id, user_key)
) {clustered};
create index session_limits_at on session_limits (at);

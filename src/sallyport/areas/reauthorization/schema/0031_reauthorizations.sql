-- Re-authorizations of live sessions, and the sessions that they change. One re-authorization of a domain runs at a
-- time. `place` and `after` are the domain of the devices and the id of the last examined session.

create table reauthorizations (
    id {id}, domain_id bigint not null, state text not null, by_disconnect bigint not null, started_by text not null,
    started_at bigint not null, ended_at bigint, place bigint not null, after bigint not null,
    examined bigint not null, undecided bigint not null
);
create index reauthorizations_order on reauthorizations (domain_id, id);
create unique index reauthorizations_running on reauthorizations (domain_id) where state = 'running';

create table reauthorized_sessions (
    id {id}, domain_id bigint not null, reauthorization_id bigint not null, session_id bigint not null,
    user_name text not null, device_name text not null, station text not null, effect text not null,
    reason text not null, before text not null, attributes bytea not null, shown text not null,
    outcome text not null, error text not null
);
create index reauthorized_sessions_order on reauthorized_sessions (domain_id, reauthorization_id, session_id);
create index reauthorized_sessions_waiting on reauthorized_sessions (domain_id, reauthorization_id, session_id)
    where outcome = '' and effect <> 'undecided';

-- Sign-ins of people at /me. hash: the SHA-256 of the cookie. user_key: the user name in the form for comparison. factor,
-- strength: the factor that the person has proved, and its strength; empty until then. is_by_link: whether the person has
-- signed in with an enrolment link. wrong: the number of wrong proofs. proven_at: the time of the last proof, or 0.

create table people_sessions (
    id {id}, hash text not null unique, domain_id bigint not null references domains (id), user_key text not null,
    user_name text not null, factor text not null, strength text not null, is_by_link bigint not null,
    wrong bigint not null default 0, source text not null, begun_at bigint not null, proven_at bigint not null,
    expires_at bigint not null
);
create index people_sessions_user on people_sessions (domain_id, user_key);
create index people_sessions_end on people_sessions (expires_at);

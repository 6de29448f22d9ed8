-- Links with which people add their first factor. A person has at most one. user_key: the user name in the form for
-- comparison. group_name: the group to which the links were sent; empty for a single person. address: the mail address;
-- empty if an operator got the link. state: see `enrolment.link.LinkState`. token_hash: the SHA-256 of the secret in the
-- link; null until the link is made. browser_hash: the SHA-256 of the cookie of the browser that opened the link first.
-- wrong: the number of wrong passwords.

create table enrolment_links (
    id {id}, domain_id bigint not null references domains (id), user_key text not null, user_name text not null,
    group_name text not null, address text not null, state text not null, problem text not null default '',
    token_hash text unique, browser_hash text not null default '', wrong bigint not null default 0,
    made_at bigint not null, expires_at bigint not null, unique (domain_id, user_key)
);
create index enrolment_links_group on enrolment_links (domain_id, group_name, state);
create index enrolment_links_state on enrolment_links (state, domain_id, id);
create index enrolment_links_end on enrolment_links (expires_at);

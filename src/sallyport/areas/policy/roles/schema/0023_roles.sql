-- Roles: named sets of reply attributes. sets: the sets as JSON, with their encoded attributes in hexadecimal.
-- login_rules.role: the case-folded name of the rule's role; empty if it has none. events.role, role_source: the role
-- of a login, and which of its sets was sent; null if the login got none.

create table login_roles (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    sets text not null, updated_at bigint not null, unique (domain_id, name_key)
);
alter table login_rules add column role text not null default '';
alter table events add column role text;
alter table events add column role_source text;

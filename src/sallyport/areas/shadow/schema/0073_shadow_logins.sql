-- Logins that another server has decided, from its log or from copies of its requests. They are no events: nothing but
-- the comparison reads them. digest: identifies a login, so that a log that is read again adds nothing. user_key,
-- station_key: the forms that are compared. attributes: those of the request, encoded, without credentials.

create table shadow_logins (
    id {id}, domain_id bigint not null references domains (id), at bigint not null, recorded_at bigint not null,
    kind text not null, digest text not null, client text not null, user_name text not null, user_key text not null,
    station text not null, station_key text not null, nas text not null, method text not null,
    attributes bytea not null, answer text not null, cause text not null, reason text not null, policy text not null,
    place text not null, unique (domain_id, digest)
);
create index shadow_logins_order on shadow_logins (domain_id, id);
create index shadow_logins_user on shadow_logins (domain_id, user_key, at);
create index shadow_logins_recorded on shadow_logins (recorded_at);

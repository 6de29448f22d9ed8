-- Stations from which a person has proved a strong second factor, so that the domain does not ask again for a time.
-- kind: mac or certificate. station: the MAC address as 12 hex digits, or the SHA-256 of the certificate. client_id: the
-- RADIUS client of a MAC address; 0 for a certificate. password: the stamp of the person's password at that time.
-- remember_h: the hours for which a domain remembers stations; 0 if it remembers none.

alter table domains add column remember_h bigint not null default 0;
create table remembered_stations (
    id {id}, domain_id bigint not null references domains (id), user_key text not null, user_name text not null,
    kind text not null, station text not null, client_id bigint not null, client_name text not null,
    provider text not null, password text not null, since bigint not null, until bigint not null,
    last_used_at bigint, unique (domain_id, user_key, station, client_id)
);
create index remembered_stations_until on remembered_stations (until);

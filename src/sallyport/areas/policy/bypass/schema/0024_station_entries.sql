-- What an entry of the MAC authentication bypass says about its station. tags: canonical texts, one on each line. psk:
-- sealed; null if the station has none. until_at: the time in microseconds from which the entry is expired; 0 for none.
-- expired: 1 once the expiry is recorded. last_seen: 0 if the station was never seen. revision: grows with each change
-- of what the login path reads.

alter table bypass_stations add column tags text not null default '';
alter table bypass_stations add column vlan text not null default '';
alter table bypass_stations add column role text not null default '';
alter table bypass_stations add column psk bytea;
alter table bypass_stations add column until_at bigint not null default 0;
alter table bypass_stations add column expired bigint not null default 0;
alter table bypass_stations add column last_seen bigint not null default 0;
alter table bypass_stations add column revision bigint not null default 0;
create index bypass_stations_revision on bypass_stations (domain_id, revision);
create index bypass_stations_until on bypass_stations (until_at) where until_at > 0 and expired = 0;

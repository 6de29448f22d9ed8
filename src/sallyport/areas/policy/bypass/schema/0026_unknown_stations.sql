-- Stations that have asked for admission by their MAC address and are not on the list of the domain. device_id: the
-- network device of the last request; 0 if it had no row yet. ssid, port: of the last request; empty if unknown.
-- outcome: the answer to the last request.

create table unknown_stations (
    id {id}, domain_id bigint not null, station text not null, first_seen bigint not null, last_seen bigint not null,
    request_count bigint not null, device_id bigint not null, ssid text not null, port text not null,
    outcome text not null, unique (domain_id, station)
);
create index unknown_stations_seen on unknown_stations (domain_id, last_seen);

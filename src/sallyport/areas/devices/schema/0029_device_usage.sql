-- How stations log in through a device: SSID, method and transport, with counts and times.

create table device_usage (
    device_id bigint not null references devices (id) on delete cascade, domain_id bigint not null, ssid text not null,
    method text not null, transport text not null, logins bigint not null, first_seen bigint not null,
    last_seen bigint not null, primary key (device_id, ssid, method, transport)
);
create index device_usage_ssid on device_usage (domain_id, ssid) where ssid <> '';
create index device_usage_domain on device_usage (domain_id);

-- The SSID and the port of the station's last login.

alter table stations add column ssid text not null default '';
alter table stations add column port text not null default '';

-- The tags of a device itself, one in a line, and its note. A change writes a new row, so that the ids and the number of
-- the rows tell what has changed since the last reading.

create table device_tags (
    id {id}, tagged_id bigint not null references devices (id) on delete cascade, own_tags text not null,
    note text not null
);
create unique index device_tags_device on device_tags (tagged_id);

-- The RADIUS client of the device's last request; 0 if it is unknown.

alter table devices add column client_id bigint not null default 0;
create index devices_of_client on devices (domain_id, client_id, id);

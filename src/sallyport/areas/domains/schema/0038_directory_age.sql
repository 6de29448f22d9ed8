-- The age in hours that the data of a cloud directory may have at a login, and the outcome of a login if they are older:
-- `deny` or `allow`.

alter table domains add column directory_max_age_h bigint not null default 24;
alter table domains add column stale_directory text not null default 'deny';

-- The last job after which the mapped fields and the numbers of members were complete, and the SHA-256, in hex, of the
-- mappings at that time; 0 and empty if there is none. A job without changes then needs not look at all people again.

alter table directories add column finished_job bigint not null default 0;
alter table directories add column finished_mappings text not null default '';

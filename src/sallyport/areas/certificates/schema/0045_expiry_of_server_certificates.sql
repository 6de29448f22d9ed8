-- told_days: the number of days before the expiry for which the audit trail has the last entry; 1000 for no entry yet.

alter table server_certificates add column told_days bigint not null default 1000;

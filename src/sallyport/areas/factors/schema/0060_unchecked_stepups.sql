-- is_checked: 0 for a login of a domain with the first factor `web`, whose password nobody has checked, otherwise 1.

alter table stepups add column is_checked bigint not null default 1;

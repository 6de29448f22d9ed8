-- The names of users in client certificates that a domain accepts: `any`, or `strong` ones alone.

alter table domains add column certificate_names text not null default 'any';

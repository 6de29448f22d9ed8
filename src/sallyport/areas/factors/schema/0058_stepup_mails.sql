-- The mails about a step-up: page_mails with the address of its page, code_mails with a code that proves it.

alter table stepups add column page_mails bigint not null default 0;
alter table stepups add column code_mails bigint not null default 0;

-- The steps of a login: the rule that decided it, and the time for which it waited for each factor.

alter table events add column rule_id bigint;
alter table events add column rule_name text not null default '';
alter table events add column first_us bigint not null default 0;
alter table events add column second_us bigint not null default 0;

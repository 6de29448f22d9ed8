-- The version of the last change that applies at once, even while an apply in several transactions is unfinished.

alter table config_version add column urgent bigint not null default 0;

-- Whether an apply whose last other change is written removes the object. If the apply does not reach its end, the object
-- is removed then, instead of being restored.

alter table configured_slices add column removes bigint not null default 0;

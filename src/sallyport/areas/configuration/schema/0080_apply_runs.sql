-- The run of an apply in several transactions: a random text for each apply, and for each undo that takes one over. So a
-- process that was stopped meanwhile sees that it must not write on.

alter table configured_slices add column run text not null default '';

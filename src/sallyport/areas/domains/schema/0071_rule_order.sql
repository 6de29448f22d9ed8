-- The order in which login rules are read: `identity` (rules with users, groups, OUs, others), or `listed`, by priority alone.

alter table domains add column rule_order text not null default 'identity';

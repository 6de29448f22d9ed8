-- The names of directory groups in the form for comparison. A login of a person in 2,000 groups folds no name. It is null
-- if a node of an earlier release has written the name.

alter table directory_groups add column name_key text;
update directory_groups set name_key = fold(name);

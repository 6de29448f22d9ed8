-- The field mappings that files have for groups of a directory, by the name of the group. A group that an import adds
-- later gets its mapping from here.

alter table directories add column group_mappings text not null default '{}';
create index directory_groups_name on directory_groups (directory_id, name_key);

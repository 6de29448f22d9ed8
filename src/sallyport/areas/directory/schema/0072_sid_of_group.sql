-- The security identifier (SID) of a group of Active Directory, by which policies of NPS name it.

alter table directory_groups add column sid text not null default '';

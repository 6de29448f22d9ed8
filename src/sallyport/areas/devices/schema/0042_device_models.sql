-- Model and firmware of the NAS, where its vendor sends them.

alter table devices add column model text not null default '';
alter table devices add column firmware text not null default '';

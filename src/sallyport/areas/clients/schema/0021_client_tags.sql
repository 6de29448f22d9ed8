-- The tags of a RADIUS client, one in a line, and a note. See `base.tags`.

alter table radius_clients add column tags text not null default '';
alter table radius_clients add column note text not null default '';

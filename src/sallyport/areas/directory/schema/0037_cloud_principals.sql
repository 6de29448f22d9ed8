-- The time when the newest data of a directory were read from it, in microseconds; 0 if it was never read. Names of
-- people with `is_alias = 2` are identifiers of people of cloud directories, such as `sid:s-1-12-1-...`. The next reading
-- of a cloud directory is a full one, because only a full reading writes these identifiers for all people.

alter table directories add column read_at bigint not null default 0;
update directories set read_at = coalesce(
    (select max(started_at) from directory_jobs j where j.directory_id = directories.id and j.state = 'DONE'
     and j.kind = 'reading' and j.source = ''), 0
);
update directories set cursor = '' where kind in ('graph', 'okta');

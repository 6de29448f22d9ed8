-- What happens to stations that no list of MAC authentication bypass has: `reject`, or `rules`.

alter table domains add column unknown_stations text not null default 'reject';

-- Whether a RADIUS client sends copies of the traffic of another server, which are recorded and never answered.

alter table radius_clients add column shadow bigint not null default 0;

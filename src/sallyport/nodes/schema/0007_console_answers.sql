-- The answers of the console's slow actions; see `nodes.answers`.

create table console_answers (
    id text primary key, session_id bigint not null, node_session text not null, at bigint not null default now_us(),
    answer bytea
);

-- The senders without an answer of each node; see `nodes.senders`.

create table node_senders (node_id bigint primary key references nodes (id) on delete cascade, senders text not null);

-- The time by which rows were last deleted for their age, and since when the clock differs from it (0: it does not); see
-- `nodes.settled`.

create table settled_time (id {rowid} check (id = 1), at bigint not null, differs_since bigint not null);

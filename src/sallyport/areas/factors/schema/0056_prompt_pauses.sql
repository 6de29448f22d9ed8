-- People who get no prompt until a time: they have said "not me", or have not answered several prompts in a row.
-- unanswered: the number of prompts in a row without an answer. reason: empty before a pause. until: 0 before a pause.
-- lock_on_not_me: whether a user who has said "not me" is locked until an operator unlocks the user.

create table prompt_pauses (
    id {id}, domain_id bigint not null references domains (id), user_key text not null, user_name text not null,
    unanswered bigint not null, reason text not null, at bigint not null, until bigint not null,
    unique (domain_id, user_key)
);
create index prompt_pauses_at on prompt_pauses (at);
alter table domains add column lock_on_not_me bigint not null default 0;

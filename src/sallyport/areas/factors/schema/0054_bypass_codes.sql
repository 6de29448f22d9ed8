-- Bypass codes of people. user_key: the user name in the form for comparison. number: the first digit of the code.
-- code_hash: the Argon2id hash of the code, sealed. uses: how often the code may be used. used: how often it was used.
-- wrong: the number of wrong codes with this first digit since the last use; too many end the code.

create table bypass_codes (
    id {id}, domain_id bigint not null references domains (id), user_key text not null, user_name text not null,
    number bigint not null, code_hash bytea, uses bigint not null, used bigint not null default 0,
    wrong bigint not null default 0, created_at bigint not null, expires_at bigint not null, last_used_at bigint,
    unique (domain_id, user_key, number)
);
create index bypass_codes_expiry on bypass_codes (expires_at);

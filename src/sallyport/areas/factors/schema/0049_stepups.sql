-- Step-ups: logins that wait for a proof of their person on a page. id: the challenge id of the login. user_key: the user
-- name in the form for comparison. code_hash: a keyed hash of the code that opens the page. address: the address of the
-- station in a signed request, or empty. factors: the factors that the domain allows, separated by commas. digits: the
-- number of digits that the page shows. state: a value of `stepup.State`. factor, strength: of the proof. browser_hash:
-- the SHA-256 of the cookie of the browser that opened the page first, or empty. wrong_digits, wrong_proofs: the numbers of
-- wrong digits at the prompt, and of wrong proofs on the page.

create table stepups (
    id text primary key, domain_id bigint not null references domains (id), user_key text not null,
    user_name text not null, code_hash text not null unique, device text not null, place text not null,
    source text not null, station text not null, address text not null, binding text not null, factors text not null,
    digits bigint not null, state text not null, factor text not null, strength text not null,
    browser_hash text not null, wrong_digits bigint not null, wrong_proofs bigint not null, opened_at bigint not null,
    expires_at bigint not null
);
create index stepups_user on stepups (domain_id, user_key);
create index stepups_expiry on stepups (expires_at);

-- The rate limits of sign-ins to the console with a password and a code. name: an address, or the hash of a name.
-- zero_at: the time in microseconds at which the count of attempts reaches zero.

create table sign_in_attempts (name text primary key, zero_at bigint not null) {clustered};
create index sign_in_attempts_zero on sign_in_attempts (zero_at);

-- A revocation of one session instead of all sessions of its user: 0 for all sessions.

alter table revocations add column session_id bigint not null default 0;

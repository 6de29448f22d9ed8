-- stamp: the hash of what changes with the password of the person and with the state of the account.

alter table people_sessions add column stamp text not null default '';

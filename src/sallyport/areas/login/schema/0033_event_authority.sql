-- The authority of the domain that has signed the client certificate of a login, and the field of the certificate that
-- has named the user; null if the login had no certificate of such an authority.

alter table events add column authority text;
alter table events add column named_by text;

-- Which revocation lists and responders were asked about the client certificate of a login, and their answers; null if the
-- login had no certificate of an authority of the domain.

alter table events add column revocation text;

-- The policy attributes of the Access-Accept of the other server, as lines NAME=VALUE in order; null if the record does
-- not have them.

alter table shadow_logins add column replies text;

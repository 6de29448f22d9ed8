-- The forms of MAC authentication bypass that a RADIUS client uses, separated by commas, and the sealed password of its
-- stations; null if the client has none.

alter table radius_clients add column mac_forms text not null default '';
alter table radius_clients add column mac_password bytea;

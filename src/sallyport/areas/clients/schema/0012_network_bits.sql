-- The networks of RADIUS clients as bits, so that an index finds overlapping networks. See `base.addresses.network_bits`.
-- It is null if a node of an earlier release has written the network.

alter table radius_clients add column network_bits text;
create index radius_clients_bits on radius_clients (network_bits, tenant_id);

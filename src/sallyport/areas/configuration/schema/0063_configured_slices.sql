-- What an apply in several transactions has changed so far, so that it can be undone if it does not reach its end. name:
-- as in configured_items. fields: what the object was before, sealed; null for an added object.

create table configured_slices (
    tenant_id bigint not null references tenants (id), number bigint not null, kind text not null, name text not null,
    fields bytea, at bigint not null, primary key (tenant_id, number)
);

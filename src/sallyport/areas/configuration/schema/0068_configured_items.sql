-- The objects that files manage (`sallyport apply`). name: the form for comparison of the object's name, after that of
-- its domain and a line end if it belongs to one.

create table configured_items (
    tenant_id bigint not null references tenants (id), kind text not null, name text not null,
    primary key (tenant_id, kind, name)
) {clustered};

-- Machines, groups and users, and the password policies of machines.

create table endpoint_users (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    user_type text not null, credential_type text not null, password bytea, created_at bigint not null,
    updated_at bigint not null, motp bytea, motp_step bigint not null default -1,
    privileged_user text not null default '', ssh_key text not null default '', did text not null default '',
    source text not null default 'Local', assigned bigint not null default 0, unique (domain_id, name_key)
);
create index endpoint_users_order on endpoint_users (domain_id, id);
create index endpoint_users_type on endpoint_users (domain_id, lower(user_type), id);
create index endpoint_users_credential on endpoint_users (domain_id, lower(credential_type), id);
create index endpoint_users_source on endpoint_users (domain_id, lower(source), id);
create index endpoint_users_assigned on endpoint_users (domain_id, assigned, id);
create index endpoint_users_did on endpoint_users (domain_id, did) where did <> '';

create table totp_enrolments (
    user_id {rowid} references endpoint_users (id) on delete cascade, seed bytea not null,
    link_hash text not null unique, wrong_codes bigint not null, expires_at bigint not null
);
create index totp_enrolments_end on totp_enrolments (expires_at);

create table endpoint_instances (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    os_id bigint not null, public_ip text not null, private_ip text not null, host_name text not null,
    status text not null, auth_type text not null, total_users bigint not null default 0,
    total_groups bigint not null default 0, created_at bigint not null, updated_at bigint not null,
    unique (domain_id, name_key)
);
create index endpoint_instances_order on endpoint_instances (domain_id, id);
create index endpoint_instances_host on endpoint_instances (domain_id, lower(host_name), id);

create table endpoint_groups (
    id {id}, domain_id bigint not null references domains (id), name text not null, name_key text not null,
    ou text not null, cn text not null, dc text not null, auth_flow text not null, status text not null,
    active bigint not null, users_count bigint not null default 0, created_at bigint not null,
    updated_at bigint not null, unique (domain_id, name_key)
);
create index endpoint_groups_order on endpoint_groups (domain_id, id);

create table endpoint_credential_policies (
    id {id}, group_id bigint not null unique references endpoint_groups (id) on delete cascade,
    ttl_user text not null, privileged_user text not null, policy_id bigint, home_dir text not null
);
create index endpoint_credential_policies_policy on endpoint_credential_policies (policy_id)
    where policy_id is not null;

create table endpoint_instance_users (
    instance_id bigint not null references endpoint_instances (id),
    user_id bigint not null references endpoint_users (id), primary key (instance_id, user_id)
) {clustered};
create index endpoint_instance_users_user on endpoint_instance_users (user_id, instance_id);

create table endpoint_instance_groups (
    instance_id bigint not null references endpoint_instances (id),
    group_id bigint not null references endpoint_groups (id), primary key (instance_id, group_id)
) {clustered};
create index endpoint_instance_groups_group on endpoint_instance_groups (group_id, instance_id);

create table endpoint_group_users (
    group_id bigint not null references endpoint_groups (id),
    user_id bigint not null references endpoint_users (id), primary key (group_id, user_id)
) {clustered};
create index endpoint_group_users_user on endpoint_group_users (user_id, group_id);

create table password_policies (
    id {id}, tenant_id bigint not null references tenants (id), name_key text not null, fields text not null,
    created_at bigint not null, updated_at bigint not null
);
create index password_policies_order on password_policies (tenant_id, id);
create unique index password_policies_name on password_policies (tenant_id, name_key) where name_key <> '';

create table policy_instances (
    policy_id bigint not null references password_policies (id), instance_id bigint not null,
    primary key (policy_id, instance_id)
) {clustered};
create index policy_instances_instance on policy_instances (instance_id, policy_id);

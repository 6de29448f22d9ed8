"""Password policies of tenants, and the machines that they are assigned to.

A machine is told by its id alone: its own area says when it is deleted.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table password_policies (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id), name_key text not null,
    fields text not null, created_at integer not null, updated_at integer not null
);
create index password_policies_order on password_policies (tenant_id, id);
create unique index password_policies_name on password_policies (tenant_id, name_key) where name_key <> '';
create table policy_instances (
    policy_id integer not null references password_policies (id), instance_id integer not null,
    primary key (policy_id, instance_id)
) without rowid;
create index policy_instances_instance on policy_instances (instance_id, policy_id);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)

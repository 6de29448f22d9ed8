"""The audit trail of what admins and agents change, and its kept totals, so that no list of a million has to count.

tenant_id 0 is the installation, domain_id 0 among the totals what is of no domain.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table audit_trail (
    id integer primary key autoincrement, at integer not null, tenant_id integer not null, domain_id integer,
    actor_kind text not null, actor text not null, token_id integer, action text not null, target text not null,
    changes text not null
);
create index audit_trail_order on audit_trail (at);
create index audit_trail_by_tenant on audit_trail (tenant_id, at);
create index audit_trail_by_domain on audit_trail (domain_id, at) where domain_id is not null;
create trigger audit_trail_append_only before update on audit_trail
    begin select raise(abort, 'the audit trail is append-only'); end;
create table audit_totals (
    tenant_id integer not null, domain_id integer not null, value integer not null, primary key (tenant_id, domain_id)
) without rowid;
"""


def apply(db: Database) -> None:
    """Make them. `transform()` drops the trigger: a later step that uses it on the trail makes it anew."""
    execute_all(db, SCHEMA)

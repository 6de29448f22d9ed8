"""The schema of a new store: all tables, and the triggers and the search that only SQLite has."""

from sqlite_utils import Database

from sallyport.store.schema import SQLITE, limits, statements

TRIGGERS = (
    """create trigger events_append_only before update on events
    begin select raise(abort, 'events are append-only'); end""",
    """create trigger accounting_records_append_only before update on accounting_records
    begin select raise(abort, 'accounting records are append-only'); end""",
    """create trigger audit_trail_append_only before update on audit_trail
    begin select raise(abort, 'the audit trail is append-only'); end""",
    """create trigger audit_trail_total after delete on audit_trail begin
    update audit_totals set value = value - 1
    where tenant_id = old.tenant_id and domain_id = coalesce(old.domain_id, 0); end""",
    """create trigger radius_clients_children before delete on radius_clients begin
    delete from radius_client_domains where client_id = old.id; end""",
    """create trigger endpoint_instances_children before delete on endpoint_instances begin
    delete from agent_orders where instance_id = old.id;
    delete from agent_discovered where instance_id = old.id;
    delete from agent_grants where instance_id = old.id; end""",
)
SEARCHED = (
    "devices", "directory_groups", "directory_users", "dids", "endpoint_groups", "endpoint_instances", "endpoint_users",
    "wallets",
)  # fmt: skip
"""The tables that are searched (`store.search`)."""
MERGED_BY_HAND = "directory_users_search"
"""Imports write many rows to this. `SearchIndex.merge` merges it in small parts, so that no login waits long."""


def apply(db: Database) -> None:
    """Create everything."""
    for statement in (*statements(SQLITE), *TRIGGERS, *limits.triggers()):
        db.execute(statement)
    db.execute("insert into config_version (id, version) values (1, 1)")
    _create_search(db)


def _create_search(db: Database) -> None:
    for name in SEARCHED:
        options = "tokenize = 'trigram case_sensitive 1', columnsize = 0"
        db.execute(f"create virtual table {name}_search using fts5 (texts, {options})")
    db.execute(f"insert into {MERGED_BY_HAND} ({MERGED_BY_HAND}, rank) values ('automerge', 0)")  # noqa: S608

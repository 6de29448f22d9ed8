"""DIDs are counted off by their indexes alone: with `deleted_at` in them no row is read before the page's own."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
drop index dids_order;
drop index dids_kind;
drop index dids_tenant;
drop index dids_wallet;
drop index dids_issuer;
create index dids_order on dids (domain_id, deleted_at, id);
create index dids_kind on dids (tenant_id, kind, deleted_at, id);
create index dids_tenant on dids (tenant_id, deleted_at, id);
create index dids_wallet on dids (domain_id, wallet_id, deleted_at, id) where wallet_id is not null;
create index dids_issuer on dids (domain_id, issuer_id, deleted_at, id) where issuer_id is not null;
"""


def apply(db: Database) -> None:
    """Make the indexes anew."""
    execute_all(db, SCHEMA)

"""DIDs and wallets are counted in parts of 4096 ids (`store.counters`); lists of some DIDs are counted off by indexes
that have `deleted_at` in them, so that no row is read before the page's own."""

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
insert into counters (domain_id, name, value)
    select domain_id, 'dids', count(*) from dids where deleted_at is null group by domain_id;
insert into counters (domain_id, name, value)
    select domain_id, 'dids#' || printf('%013x', id >> 12), count(*) from dids where deleted_at is null
    group by domain_id, id >> 12;
insert into counters (domain_id, name, value)
    select domain_id, 'wallets#' || printf('%013x', id >> 12), count(*) from wallets group by domain_id, id >> 12;
"""


def apply(db: Database) -> None:
    """Count what is there, and make the indexes anew."""
    execute_all(db, SCHEMA)

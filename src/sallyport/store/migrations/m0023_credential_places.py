"""The place of each credential in its domain's list, from 1: credentials are never deleted, so that any page is found
without passing over those before it."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table credentials add column place integer not null default 0;
update credentials set place = numbered.place from (
    select id, row_number() over (partition by domain_id order by id) as place from credentials
) as numbered where numbered.id = credentials.id;
drop index credentials_order;
create unique index credentials_place on credentials (domain_id, place);
"""


def apply(db: Database) -> None:
    """Give every credential its place."""
    execute_all(db, SCHEMA)

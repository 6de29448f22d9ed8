"""Searches in PostgreSQL, whose plans depend on the searched text."""

from sallyport.areas.devices.repo import INDEX, SELECT
from sallyport.areas.devices.rows import DeviceRow
from sallyport.store.model import ListQuery, Tx
from sallyport.store.postgres.engine import PostgresStore
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
PREPARED = """select coalesce(sum(generic_plans), 0), coalesce(sum(custom_plans), 0) from pg_prepared_statements
where statement like '%texts like%'"""


async def test_a_repeated_search_is_planned_for_its_text(store: PostgresStore) -> None:
    """However often a search is repeated, PostgreSQL does not use a plan for unknown texts, which would read all rows
    of the domain."""

    def search(tx: Tx) -> None:
        INDEX.page(tx, DeviceRow, SELECT, ListQuery(1, 0, 10), "berlin")

    for _ in range(8):
        await store.search(search)
    ((generic, custom),) = await store.search(lambda tx: list(tx.rows(PREPARED)))
    assert (generic, custom) == (0, 7)  # the first execution is not prepared

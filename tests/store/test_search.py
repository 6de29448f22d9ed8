"""The search over rows, as FTS5 keeps it."""

from sallyport.store.model import Tx
from sallyport.store.search import SearchIndex, matching, pieces
from sallyport.store.sqlite import SqliteStore

COUNT = 200


async def test_an_index_is_merged_by_its_writers(sqlite: SqliteStore) -> None:
    """One that does not merge by itself has few parts nevertheless, and finds everything."""
    index = SearchIndex("directory_users_search")

    def add(tx: Tx, number: int) -> None:
        index.add_all(tx, [(number, pieces(1, [f"person {number:05}"]))])
        index.merge(tx)

    for number in range(1, COUNT + 1):
        await sqlite.write(lambda tx, number=number: add(tx, number))
    parts = await sqlite.read(lambda tx: tx.value(int, "select count(distinct segid) from directory_users_search_idx"))
    assert parts is not None and parts < 12
    for text, found in (("person", COUNT), ("00123", 1)):
        rows = await sqlite.read(lambda tx, text=text: tx.rows(index.found, match=matching(1, text)))
        assert len(rows) == found

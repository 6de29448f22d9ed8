"""Counters of lists, kept in parts."""

from sallyport.store import counters
from sallyport.store.counters import NO_ROW, PART_BITS
from sallyport.store.model import ListQuery, Store, Tx


async def test_a_place_is_found(store: Store) -> None:
    """seek finds the row at a position, in the order of ids. A position beyond the end is after every row. Other lists
    and domains do not count.
    """

    def check(tx: Tx) -> None:
        for row_id in (5, 5000):
            counters.add_row(tx, 2, "list", row_id, 9000)
            counters.add_row(tx, 1, "list2", row_id, 9000)
        for row_id, count in ((0, 4000), (1, 1), (1 << PART_BITS, 0), (3 << PART_BITS, 5000), (2**50, 2)):
            counters.add_row(tx, 1, "list", row_id, count)
        counters.add_row(tx, 1, "list", 2, -1)
        assert counters.total(tx, 1, "list") == 9002
        last = 2**50
        assert counters.seek(tx, 1, "list", 3999) == (0, 3999)
        assert counters.seek(tx, 1, "list", 4999) == (3 << PART_BITS, 999)
        assert counters.seek(tx, 1, "list", 8999) == (3 << PART_BITS, 4999)
        assert counters.seek(tx, 1, "list", 9001) == (last, 1)
        assert counters.seek(tx, 1, "list", 9002) == (NO_ROW, 0)

    await store.write(check)


async def test_a_page_beyond_the_end_is_empty(store: Store) -> None:
    """A page that begins after the last row has no rows, and the total."""

    def check(tx: Tx) -> None:
        counters.add_row(tx, 1, "list", 5, 5000)
        query = ListQuery(1, 6000, 10)
        assert counters.whole_page(tx, _id, "select id from devices", "devices", query, counter="list") == ([], 5000)

    await store.write(check)


def _id(*, id: int) -> int:
    return id

"""The search for parts of texts that all lists share. `tests/areas/devices/test_search.py` compares what it finds
with a search in plain Python."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sallyport.base.text import fold
from sallyport.base.wire import Minimum
from sallyport.store import counters
from sallyport.store.connections import MAX_PHRASE_LENGTH, SqliteTx, open_connection
from sallyport.store.migrations import migrate
from sallyport.store.model import ListQuery, Tx
from sallyport.store.search import MAX_COUNTED, ROW_BITS, IndexEntry, SearchIndex
from sallyport.store.search import page as list_page
from sallyport.store.sqlite import SqliteStore

DOMAIN = 3
INDEX = SearchIndex("devices_search")
COUNT = 200


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an empty store."""
    path = tmp_path / "s.db"
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
        yield connection


def ids(tx: Tx, text: str, domain_id: int = DOMAIN) -> list[int]:
    """Return the ids that the search finds in a domain."""
    sql, parameters = INDEX.find(tx, domain_id, text)
    return [int(str(row_id)) for (row_id,) in tx.rows(sql, **parameters)]


def test_a_row_leaves_nothing_behind(connection: sqlite3.Connection) -> None:
    """After its removal a row has no trigram in the index, whatever its texts were."""
    tx = SqliteTx(connection)
    texts = ("", "a", "aa", "a@b@@" + 99 * "c", "aaaaaaa", "größe \U0001f512", "größe \U0001f512", '"*"', "nul\0 \x1f")
    INDEX.add(tx, DOMAIN, 1, texts)
    INDEX.add(tx, DOMAIN, 2, ("abc",))
    connection.execute("create virtual table temp.known using fts5vocab (main, devices_search, instance)")
    assert connection.execute("select count(*) from temp.known").fetchone() > (100,)
    INDEX.remove(tx, DOMAIN, [1])
    found = connection.execute("select term, doc from temp.known").fetchall()
    assert found == [("abc", (DOMAIN << ROW_BITS) + 2)]
    connection.execute("insert into devices_search (devices_search) values ('integrity-check')")


@pytest.mark.parametrize("text", ["a", "ab", "abc", "bcd", '"', '"*', "\0", "\x1f", "ß", "ss", "größe", "\U0001f512"])
def test_a_search_finds_the_rows_of_one_domain_in_order(connection: sqlite3.Connection, text: str) -> None:
    """A search for text of any length finds the rows of one domain in order, including the first and the last id."""
    tx = SqliteTx(connection)
    others = (DOMAIN - 1, DOMAIN + 1)
    for row_id in ((1 << ROW_BITS) - 1, 7, 1):
        for domain_id in (DOMAIN, *others):
            INDEX.add(tx, domain_id, row_id, ("x", fold('abcd"* \0\x1f größe \U0001f512')))
    for domain_id in others:
        INDEX.add(tx, domain_id, 9, (fold(text),))
    assert ids(tx, text) == ids(tx, text.upper()) == [1, 7, (1 << ROW_BITS) - 1]


@pytest.mark.parametrize("text", ["abc", "ab"])
def test_a_search_reads_no_row_of_another_domain(connection: sqlite3.Connection, text: str) -> None:
    """A search in a domain without a match takes a few steps of SQLite, although other domains have 6,000 matches."""
    tx, steps = SqliteTx(connection), 0
    connection.execute("create table searched (id integer primary key)")
    for domain_id in (DOMAIN - 1, DOMAIN + 1):
        INDEX.add_all(tx, [IndexEntry(domain_id, row_id, ("abc",)) for row_id in range(1, 3001)])

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 1)
    assert page(tx, text, 0) == ([], 0)
    assert 0 < steps < 500


def test_three_letters_are_looked_up(connection: sqlite3.Connection) -> None:
    """A search for three letters reads no other row of its domain: the index has their trigram."""
    tx, steps = SqliteTx(connection), 0
    INDEX.add_all(tx, [IndexEntry(DOMAIN, row_id, ("xyz",)) for row_id in range(1, 3001)])
    INDEX.add(tx, DOMAIN, 5000, ("abc",))

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 1)
    assert ids(tx, "abc") == [5000]
    assert 0 < steps < 500


def _id(*, id: int) -> int:
    return id


def page(tx: Tx, text: str, offset: int, limit: int = 2) -> tuple[list[int], int]:
    """Return one page of the table `searched`."""
    return INDEX.page(tx, _id, "select id from searched", ListQuery(DOMAIN, offset, limit), text)


@pytest.mark.parametrize("text", ["a", "ab", "abc"])
def test_a_total_is_exact_up_to_its_maximum(connection: sqlite3.Connection, text: str) -> None:
    """With one match more than the maximum, the total is the maximum, and is marked as a minimum on each page."""
    tx = SqliteTx(connection)
    connection.execute("create table searched (id integer primary key)")

    def add(first: int, last: int) -> None:
        tx.insert("searched", ("id",), [(number,) for number in range(first, last + 1)])
        INDEX.add_all(tx, [IndexEntry(DOMAIN, number, ("abc",)) for number in range(first, last + 1)])

    add(1, MAX_COUNTED)
    INDEX.add(tx, DOMAIN + 1, 1, ("abc",))
    for offset in (0, MAX_COUNTED - 1, MAX_COUNTED):
        rows, total = page(tx, text, offset)
        assert rows == [number for number in (offset + 1, offset + 2) if number <= MAX_COUNTED]
        assert total == MAX_COUNTED
        assert not isinstance(total, Minimum)
    add(MAX_COUNTED + 1, MAX_COUNTED + 1)
    for offset in (0, MAX_COUNTED - 1, MAX_COUNTED, MAX_COUNTED + 5):
        rows, total = page(tx, text, offset)
        assert rows == [number for number in (offset + 1, offset + 2) if number <= MAX_COUNTED + 1]
        assert total == MAX_COUNTED
        assert isinstance(total, Minimum)


async def test_an_index_is_merged_by_its_writers(sqlite: SqliteStore) -> None:
    """An index with `automerge` off has few segments, and the search finds everything."""
    index = SearchIndex("directory_users_search")

    def add(tx: Tx, number: int) -> None:
        index.add_all(tx, [IndexEntry(1, number, [f"person {number:05}"])])
        index.merge(tx)

    for number in range(1, COUNT + 1):
        await sqlite.write(lambda tx, number=number: add(tx, number))
    segments = "select count(distinct segid) from directory_users_search_idx"
    parts = await sqlite.read(lambda tx: tx.value(int, segments))
    assert parts is not None and parts < 12
    for text, found in (("person", COUNT), ("00123", 1), ("00", COUNT), ("r", COUNT)):
        ids, match = await sqlite.read(lambda tx, text=text: index.find(tx, 1, text))
        rows = await sqlite.read(lambda tx, ids=ids, match=match: tx.rows(ids, **match))
        assert len(rows) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("building-7-floor-3", [1, 2], id="a part of both"),
        pytest.param("Building-7-floor-3-switch-12", [1], id="a whole text"),
        pytest.param("building-7-floor-3-switch-13", [], id="another end"),
        pytest.param("10." * 85, [], id="a text longer than all"),
    ],
)
def test_a_long_text_is_found_as_a_whole(connection: sqlite3.Connection, text: str, found: list[int]) -> None:
    """FTS5 looks up only the first letters of a long text, since each costs time. The rest is compared after that."""
    tx = SqliteTx(connection)
    INDEX.add(tx, DOMAIN, 1, ("building-7-floor-3-switch-12", "10.10.10.10"))
    INDEX.add(tx, DOMAIN, 2, ("old building-7-floor-3",))
    assert ids(tx, text) == found
    assert len(str(INDEX.find(tx, DOMAIN, text)[1]["match"])) <= MAX_PHRASE_LENGTH + 2


def test_the_total_of_a_list(connection: sqlite3.Connection) -> None:
    """The total is the stored one, or that of a page with the last row, or counted."""
    tx = SqliteTx(connection)
    connection.execute("create table searched (id integer primary key)")
    tx.insert("searched", ("id",), [(number,) for number in range(1, 6)])
    counters.add(tx, DOMAIN, "list", 70)

    def page(offset: int, counter: str | None, *, searched: bool = False) -> tuple[list[int], int]:
        ids, query = "select id from searched where id > :least", ListQuery(DOMAIN, offset, 2)
        return list_page(tx, _id, "select id from searched", ids, query, counter=counter, searched=searched, least=1)

    assert page(0, "list") == ([2, 3], 70)
    for searched in (False, True):
        assert page(0, None, searched=searched) == ([2, 3], 4)
        assert page(3, None, searched=searched) == ([5], 4)
        assert page(8, None, searched=searched) == ([], 4)

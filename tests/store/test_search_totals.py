"""Totals of searches are exact, whatever is remembered of them."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.migrate import migrate
from sallyport.store.model import Tx
from sallyport.store.search import KEPT, REALM, SearchIndex, Stretch, cut
from sallyport.store.sqlite import SqliteStore
from sallyport.store.totals import MOST, Change, Totals

INDEX = SearchIndex("devices_search")
LETTERS = 'aaab@.É1"\0\U0001f512Ж\n'
Rows = dict[int, tuple[int, tuple[str, ...]]]
"""The domain and the texts of each row."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty store, with a table for what is searched."""
    path = tmp_path / "s.db"
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
        connection.execute("create table searched (id integer primary key)")
    return path


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes."""
    with closing(open_connection(path)) as connection:
        connection.execute("pragma synchronous = off")
        yield connection


@pytest.fixture
def reader(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads."""
    with closing(open_connection(path, read_only=True)) as connection:
        yield connection


def add(connection: sqlite3.Connection, row_id: int, *texts: str, domain_id: int = 1) -> None:
    """A row in the search, and in the table."""
    tx = SqliteTx(connection)
    tx.execute("insert into searched (id) values (:id)", id=row_id)
    INDEX.add(tx, domain_id, row_id, [text.casefold() for text in texts])


def remove(connection: sqlite3.Connection, row_id: int, *texts: str, domain_id: int = 1) -> None:
    """It is gone."""
    tx = SqliteTx(connection)
    tx.execute("delete from searched where id = :id", id=row_id)
    INDEX.remove(tx, domain_id, row_id, [text.casefold() for text in texts])


def _id(*, id: int) -> int:
    return id


def total(tx: Tx, text: str, domain_id: int = 1) -> int:
    """What a page of one row tells of the total."""
    rows, found = INDEX.page(tx, _id, "select id from searched", Stretch(domain_id, 0, 1), text)
    assert len(rows) == min(found, 1)
    return found


def meant(rows: Rows, text: str, domain_id: int) -> int:
    """The total by the rule and nothing else."""
    folded = text.casefold()
    return sum(of == domain_id and any(folded in each.casefold() for each in texts) for of, texts in rows.values())


@pytest.mark.parametrize("seed", range(3))
def test_a_total_is_exact_in_each_state(
    seed: int, writer: sqlite3.Connection, reader: sqlite3.Connection, path: Path
) -> None:
    """Rows of two domains come and go, with any letters, in transactions of which some are undone; who reads an older
    state shares what is remembered with who reads the latest."""
    chance, totals, rows, seen = random.Random(seed), Totals(), Rows(), Rows()

    def text(longest: int) -> str:
        return "".join(chance.choices(LETTERS, k=chance.randint(1, longest)))

    with closing(open_connection(path, read_only=True)) as older:
        for turn in range(250):
            before = dict(rows)
            writer.execute("begin")
            for _ in range(chance.randint(1, 4)):
                row_id, domain_id = chance.randint(1, 60), chance.randint(1, 2)
                if row_id in rows:
                    of, texts = rows.pop(row_id)
                    remove(writer, row_id, *texts, domain_id=of)
                else:
                    rows[row_id] = domain_id, (text(12), text(12))
                    add(writer, row_id, *rows[row_id][1], domain_id=domain_id)
            searched, domain_id = text(7), chance.randint(1, 2)
            assert total(SqliteTx(writer), searched, domain_id) == meant(rows, searched, domain_id)
            kept = chance.random() < 0.7
            writer.execute("commit" if kept else "rollback")
            rows = rows if kept else before
            if turn % 10 == 0:
                older.rollback()
                older.execute("begin")
                total(SqliteTx(older), "a")  # a state is that of the first look
                seen = dict(rows)
            for searched in ("a", "aa", "b@", text(3), "a" * 5, "a" * 6, text(8), "@aaaa", "@" + text(9)):
                for domain_id in (1, 2):
                    for connection, state in ((reader, rows), (older, seen)):
                        found = total(SqliteTx(connection, totals=totals), searched, domain_id)
                        assert found == meant(state, searched, domain_id), searched


@pytest.mark.parametrize("text", ["p", "pe", "per", "pers", "perso", "person", "@example.org"])
def test_who_asks_again_does_not_wait_for_a_count(
    text: str, writer: sqlite3.Connection, reader: sqlite3.Connection
) -> None:
    """Nor do those changes cost one that came since."""
    totals, statements = Totals(), list[str]()
    for number in range(1, 4):
        add(writer, number, f"person.{number}@example.org")
    assert total(SqliteTx(reader, totals=totals), text) == 3
    remove(writer, 3, "person.3@example.org")
    add(writer, 4, "person.4@example.org")
    add(writer, 5, "soul")
    add(writer, 6, "person.6@example.org", domain_id=2)
    add(writer, 7, "person.7@example.org", "person.8@example.org")
    reader.set_trace_callback(statements.append)
    assert total(SqliteTx(reader, totals=totals), text) == 4
    assert statements
    assert not [each for each in statements if "count(" in each or "_terms" in each]


@pytest.mark.parametrize("length", [3, 4, 5, REALM - 1, REALM, REALM + 1, REALM + 2, 2 * REALM])
def test_a_mail_domain_of_any_length_is_found(length: int, writer: sqlite3.Connection) -> None:
    """By each beginning, with another @ in it or behind it too, and by nothing that is longer."""
    add(writer, 1, f"a@{length * 'b'}")
    add(writer, 2, f"a@{length * 'b'}@c", "d@bbb")
    add(writer, 3, "@")
    for text, found in (
        ("@", 3),
        ("@b", 2),
        ("@" + length * "b", 2),
        ("@" + length * "b" + "@", 1),
        ("@" + length * "b" + "b", 0),
        ("b" * length + "@c", 1),
    ):
        assert total(SqliteTx(writer), text) == found, text


def test_a_total_of_another_history_is_not_taken(
    writer: sqlite3.Connection, reader: sqlite3.Connection, tmp_path: Path
) -> None:
    """A store is restored, and goes on to as many changes as it had before: in other rows."""
    totals = Totals()
    add(writer, 1, "person 1")
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        writer.backup(backup)
        add(writer, 2, "person 2")
        assert total(SqliteTx(reader, totals=totals), "person") == 2
        backup.backup(writer)
    assert total(SqliteTx(reader, totals=totals), "person") == 1
    add(writer, 2, "person 2")
    assert total(SqliteTx(reader, totals=totals), "person") == 2
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        backup.backup(writer)
    add(writer, 2, "somebody")
    assert total(SqliteTx(reader, totals=totals), "person") == 1


def test_the_log_is_bounded(writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
    """A total is remembered as long as the log has what it was counted with, and is counted anew after that."""
    totals, statements = Totals(), list[str]()
    reader.set_trace_callback(statements.append)
    add(writer, 1, "person 1")
    assert total(SqliteTx(reader, totals=totals), "person") == 1
    for changes, counted in ((KEPT - 1, False), (KEPT, True)):
        INDEX.add_all(SqliteTx(writer), [cut(2, 2, ["a"])] * (changes - 1))
        (remove if counted else add)(writer, 2, "person 2")
        statements.clear()
        assert total(SqliteTx(reader, totals=totals), "person") == 2 - counted
        assert any("count(" in each for each in statements) == counted
    assert reader.execute("select count(*) from search_changes").fetchone() == (KEPT,)


def test_the_latest_searches_are_remembered() -> None:
    """So many and no more; one that is asked again is among the latest."""
    totals, change = Totals(), Change(1, 1)
    for number in range(MOST):
        totals.put(("devices", 1, str(number)), number, change)
    totals.put(("devices", 1, "0"), 7, change)
    totals.put(("devices", 1, "new"), 8, change)
    kept = [number for number in range(MOST) if totals.get(("devices", 1, str(number)))]
    assert kept == [0, *range(2, MOST)]
    assert totals.get(("devices", 1, "0")) == (7, change)


async def test_readers_remember_and_writers_do_not(sqlite: SqliteStore) -> None:
    """All that read a store share what is remembered; what a transaction has not kept yet is nothing to remember."""
    seen = [await sqlite.read(lambda tx: tx.totals) for _ in range(2)]
    assert seen[0] is seen[1] is not None
    assert await sqlite.write(lambda tx: tx.totals) is None

"""Backups by pg_dump, and their restore while other nodes run."""

import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import StoreError
from sallyport.store.model import Tx
from sallyport.store.postgres.connection import Cursor
from sallyport.store.postgres.dump import write_dump
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.link import Link
from tests.areas import Areas, SetClock, running_postgres, running_store
from tests.peers.postgres import database_in, needs_postgres
from tests.store.test_transfer import filled, sums

pytestmark = [
    needs_postgres,
    pytest.mark.skipif(shutil.which("pg_dump") is None, reason="no pg_dump: apt-get install postgresql-client"),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    """Yield a store with rows of many tables."""
    async with running_postgres(tmp_path) as store:
        await filled(store)
        yield store


def whole(store: PostgresStore, path: Path) -> dict[str, object]:
    """Return count and checksum of every table but the version of the configuration, which always grows."""
    store.write_copy(path)
    return {name: each for name, each in sums(path).items() if name != "config_version"}


def nothing(_: Tx) -> None:
    """Complete nothing."""


async def test_every_row_comes_back(store: PostgresStore, tmp_path: Path) -> None:
    """A restore gives every table the rows of the backup, keys of deleted rows are not used again, and other changes
    are gone."""
    before = whole(store, tmp_path / "before.db")
    await trio.to_thread.run_sync(store.write_dump, tmp_path / "all.dump")
    await store.write(lambda tx: tx.execute("delete from endpoint_users"))
    await store.write(lambda tx: tx.execute("update domains set name = 'other'"))
    await store.replace_by_dump(tmp_path / "all.dump", nothing)
    store.acknowledge()
    assert whole(store, tmp_path / "after.db") == before
    areas = Areas(store, SetClock())
    await areas.configuration.reload()
    (domain,) = areas.domains.table.by_id
    assert await areas.add_user(domain, "new", b"hello") == 6
    assert await store.read(lambda tx: tx.value(str, "select name from domains")) == "corp"


async def test_another_connection_writes_as_the_restore_ends(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write over another connection just after the commit of a restore is refused. After the caches were reloaded,
    writes are accepted."""
    committed, resumed = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()
    await trio.to_thread.run_sync(store.write_dump, tmp_path / "all.dump")
    commit = Link.commit

    def paused(link: Link, cursor: Cursor) -> None:
        commit(link, cursor)
        if not committed.is_set():
            token.run_sync_soon(committed.set)
            resumed.wait(10)

    async def beside() -> None:
        await committed.wait()
        with pytest.raises(StoreError, match="a backup has replaced the store"):
            await store.write_aside(nothing)
        resumed.set()

    monkeypatch.setattr(Link, "commit", paused)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(beside)
        await store.replace_by_dump(tmp_path / "all.dump", nothing)
    store.acknowledge()
    await store.write(nothing)
    await store.write_aside(nothing)
    assert not store.is_replaced


async def test_an_error_at_the_end_changes_nothing(store: PostgresStore, tmp_path: Path) -> None:
    """If the check of the new rows fails, or the file is cut off, the store keeps its rows and takes writes."""
    await trio.to_thread.run_sync(store.write_dump, tmp_path / "all.dump")
    await store.write(lambda tx: tx.execute("insert into counters (domain_id, name, value) values (0, 'kept', 1)"))
    before = whole(store, tmp_path / "before.db")

    def refuse(_: Tx) -> None:
        raise StoreError("made with another key")

    with pytest.raises(StoreError, match="made with another key"):
        await store.replace_by_dump(tmp_path / "all.dump", refuse)
    octets = (tmp_path / "all.dump").read_bytes()
    for part, cause in (
        (len(octets) // 2, "pg_restore: "),
        (len(octets) - 100, None),
        (len(octets) - 1, "pg_restore: "),
    ):
        (tmp_path / "cut.dump").write_bytes(octets[:part])
        with pytest.raises(StoreError, match=cause):
            await store.replace_by_dump(tmp_path / "cut.dump", nothing)
    assert whole(store, tmp_path / "after.db") == before
    await store.write(lambda tx: tx.execute("insert into counters (domain_id, name, value) values (0, 'later', 1)"))


async def test_a_file_of_another_program_or_version_is_refused(store: PostgresStore, tmp_path: Path) -> None:
    """The message says what the file lacks, or which version can restore it."""
    (tmp_path / "other").mkdir()
    write_dump(database_in(tmp_path / "other", is_empty=True), tmp_path / "other.dump")
    with pytest.raises(StoreError, match=r"other\.dump is not a backup of Sallyport"):
        await store.replace_by_dump(tmp_path / "other.dump", nothing)
    await store.write(lambda tx: tx.execute("insert into schema_steps values ('p0002_next', 'p0001_baseline', now())"))
    write_dump(database_in(tmp_path), tmp_path / "newer.dump")
    await store.write(lambda tx: tx.execute("delete from schema_steps where name = 'p0002_next'"))
    with pytest.raises(StoreError, match="restore it with the version that made it"):
        await store.replace_by_dump(tmp_path / "newer.dump", nothing)


async def test_the_other_engine_refuses_such_backups(tmp_path: Path) -> None:
    """SQLite neither makes nor restores them, and names the form that it has."""
    async with running_store(tmp_path / "s.db") as sqlite:
        with pytest.raises(StoreError, match=r"use a backup whose name ends in \.db"):
            sqlite.write_dump(tmp_path / "all.dump")
        with pytest.raises(StoreError, match=r"use a backup whose name ends in \.db"):
            await sqlite.replace_by_dump(tmp_path / "all.dump", nothing)


async def test_no_password_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump gets the password of the URL in its environment."""
    program = tmp_path / "pg_dump"
    program.write_text('#!/bin/sh\necho "$@" >"$0.words"\necho "$PGPASSWORD" >"$0.password"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    write_dump("postgresql://sallyport:s3cret%21@db.example.com/sallyport?sslmode=verify-full", tmp_path / "x.dump")
    words = Path(f"{program}.words").read_text()
    assert "s3cret" not in words and "host=db.example.com" in words and "sslmode=verify-full" in words
    assert Path(f"{program}.password").read_text() == "s3cret!\n"


async def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pg_dump, the error names the package and the other form of a backup."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="pg_dump is not installed: install PostgreSQL's client programs"):
        write_dump(database_in(tmp_path), tmp_path / "x.dump")


async def test_the_programs_of_the_server_make_the_file(store: PostgresStore, tmp_path: Path) -> None:
    """The file is pg_dump's custom format: pg_restore lists its tables."""
    await trio.to_thread.run_sync(store.write_dump, tmp_path / "all.dump")
    listed = subprocess.run(["pg_restore", "--list", tmp_path / "all.dump"], capture_output=True, check=True).stdout
    assert b"Format: CUSTOM" in listed and b"TABLE DATA public endpoint_users" in listed

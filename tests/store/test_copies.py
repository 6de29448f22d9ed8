"""Backup and restore of the store during its use, with each engine."""

import sqlite3
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import SchemaError, SecretError, StoreError
from sallyport.store.copies import Copies
from sallyport.store.model import Engine, Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.sqlite import SqliteStore
from tests.store.conftest import NO_NAMES, names, put


class Keeper:
    """The copies of a store, and a record of their callbacks."""

    def __init__(self, store: Engine, place: Path) -> None:
        self.store = store
        self.place = place
        self.forgotten = self.backups = 0
        self.wrong_key = False
        self.configuration = Configuration(store)
        self.listed = self.configuration.hold(names, NO_NAMES)
        self.configuration.on_foreign_change(self._forget)
        self.copies = Copies(
            store, place, check=self._check, replaced=self.configuration.restored, backed_up=self._backed_up
        )

    def _forget(self) -> None:
        self.forgotten += 1

    def _backed_up(self, at: int) -> None:
        self.backups += 1

    def _check(self, tx: Tx) -> None:
        names(tx)
        if self.wrong_key:
            raise SecretError("radius_clients/1/secret cannot be decrypted with this master key")


@pytest.fixture
async def keeper(store: Engine, tmp_path: Path) -> AsyncIterator[Keeper]:
    """Yield a store that contains a, b and c."""
    keeper = Keeper(store, tmp_path / "s.db")
    for value, name in enumerate("abc"):
        await keeper.configuration.change(partial(put, name=name, value=value))
    yield keeper


def content(path: Path) -> list[str]:
    """Check the integrity of a copy, and return its names."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        return [name for (name,) in connection.execute("select name from counters order by value")]


async def test_a_backup_is_a_file_for_its_owner(keeper: Keeper, tmp_path: Path) -> None:
    """A backup is one file of mode 0600 with the reported size, and no other file is left."""
    target = tmp_path / "copies" / "b.db"
    target.parent.mkdir()
    size = await keeper.copies.backup(target)
    assert (target.stat().st_size, stat.S_IMODE(target.stat().st_mode)) == (size, 0o600)
    assert content(target) == ["a", "b", "c"]
    assert [each.name for each in target.parent.iterdir()] == ["b.db"]
    assert keeper.backups == 1


async def test_a_backup_needs_no_log_to_be_read(keeper: Keeper, tmp_path: Path) -> None:
    """A backup can be restored from a read-only directory or medium."""
    path = tmp_path / "copy.db"
    await keeper.copies.backup(path)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as copy:
        assert copy.execute("pragma journal_mode").fetchone() == ("delete",)
        assert copy.execute("select count(*) from config_version").fetchone() == (1,)
        assert sorted(each.name for each in tmp_path.glob("copy.db*")) == ["copy.db"]


async def test_a_backup_replaces_a_file_at_once(keeper: Keeper, tmp_path: Path) -> None:
    """A backup replaces an older file of its name when it is complete."""
    target = tmp_path / "b.db"
    await keeper.copies.backup(target)
    (tmp_path / "b.db.part").write_bytes(b"of a run that was interrupted")
    await keeper.configuration.change(partial(put, name="d", value=9))
    await keeper.copies.backup(target)
    assert content(target) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", ["missing/b.db", "folder"])
async def test_a_backup_that_fails_leaves_no_file(keeper: Keeper, tmp_path: Path, name: str) -> None:
    """A target that cannot be written raises StoreError. It does not count as a backup, and the store continues."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=str(tmp_path / name)):
        await keeper.copies.backup(tmp_path / name)
    assert keeper.backups == 0
    assert sorted(each.name for each in tmp_path.iterdir() if "part" in each.name) == []
    await keeper.configuration.change(partial(put, name="d", value=9))


class Traffic:
    """Numbers that are written one by one, and reads beside them, until cancelled. committed: the reported numbers;
    refused: the number of writes that a restore refused.
    """

    def __init__(self, store: Engine) -> None:
        self.committed: list[int] = []
        self.refused = 0
        self.reads = 0
        self._store = store

    async def write(self) -> None:
        for number in count(100):
            try:
                await self._store.write(partial(put, name=f"n{number}", value=number))
                self.committed.append(number)
            except StoreError:
                self.refused += 1
                await trio.lowlevel.checkpoint()

    async def read(self) -> None:
        while True:
            assert (await self._store.read(names))[:3] == ["a", "b", "c"]
            self.reads += 1


async def test_a_backup_under_traffic_is_one_state(keeper: Keeper, tmp_path: Path) -> None:
    """A backup during writes contains the first numbers of the sequence, at least those that were committed before it
    began. All committed numbers stay in the store.
    """
    traffic = Traffic(keeper.store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(traffic.write)
        for each in range(5):
            before = len(traffic.committed)
            await keeper.copies.backup(tmp_path / f"{each}.db")
            copy = content(tmp_path / f"{each}.db")[3:]
            assert copy == [f"n{number}" for number in range(100, 100 + len(copy))]
            assert before <= len(copy)
        nursery.cancel_scope.cancel()
    assert traffic.committed
    assert (await keeper.store.read(names))[3:] == [f"n{number}" for number in traffic.committed]


async def test_a_restore_holds_at_once(keeper: Keeper, tmp_path: Path) -> None:
    """After a restore reads, snapshots and caches have the restored state, and writes continue from it."""
    await keeper.copies.backup(tmp_path / "b.db")
    await keeper.configuration.change(partial(put, name="later", value=9))
    await keeper.copies.restore(tmp_path / "b.db")
    assert await keeper.store.read(names) == keeper.listed.value == ["a", "b", "c"]
    assert keeper.forgotten == 1
    await keeper.configuration.change(partial(put, name="d", value=9))
    assert keeper.listed.value == ["a", "b", "c", "d"]
    assert content(tmp_path / "b.db") == ["a", "b", "c"]
    assert not list(tmp_path.glob("*.part"))


async def test_files_of_an_interrupted_restore_are_removed(keeper: Keeper, tmp_path: Path) -> None:
    """A start removes the files of an interrupted restore, which have the size and the content of a store. The store
    itself stays.
    """
    path = keeper.place
    for end in (".restore", ".restore-wal", ".restore-journal"):
        path.with_name(path.name + end).write_bytes(b"x")
    keeper.copies.clear()
    assert [each.name for each in path.parent.glob(f"{path.name}.restore*")] == []
    assert (await keeper.store.read(names)) == keeper.listed.value


async def test_a_worker_that_starts_during_a_restore(keeper: Keeper, tmp_path: Path) -> None:
    """A worker that starts does not delete the temporary copy of a restore that another worker makes."""

    def worker(number: str, check: Callable[[Tx], None]) -> Copies:
        replaced, backed_up = keeper.configuration.restored, keeper._backed_up
        return Copies(keeper.store, keeper.place, check=check, replaced=replaced, backed_up=backed_up, worker=number)

    two = worker("2", lambda _tx: None)
    one = worker("1", lambda _tx: two.clear())
    await one.backup(tmp_path / "b.db")
    await keeper.configuration.change(partial(put, name="d", value=9))
    await one.restore(tmp_path / "b.db")
    assert keeper.listed.value == ["a", "b", "c"]
    assert [each.name for each in keeper.place.parent.glob("*.restore*")] == []


async def test_a_copy_of_the_store_needs_no_other_directory(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sallyport db copy` keeps its temporary file beside the store, because /tmp may be small, and others may read
    it. It leaves no file, also if the target cannot be used."""
    keeper, there = Keeper(sqlite, sqlite.path), {each.name for each in tmp_path.iterdir()}
    await keeper.configuration.change(partial(put, name="a"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="refused"):
        await keeper.copies.copy_to("postgresql://sallyport@127.0.0.1:1/sallyport")
    assert {each.name for each in tmp_path.iterdir()} == there


async def test_two_restores_at_once(keeper: Keeper, tmp_path: Path) -> None:
    """Two restores at the same time are made one after the other."""
    await keeper.copies.backup(tmp_path / "b.db")
    await keeper.configuration.change(partial(put, name="d", value=9))
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(keeper.copies.restore, tmp_path / "b.db")
    assert keeper.listed.value == ["a", "b", "c"]


async def test_a_restored_store_still_waits_for_the_disk(sqlite: SqliteStore, tmp_path: Path) -> None:
    """A restore keeps the pragmas: WAL mode, synchronous=FULL, foreign keys."""
    keeper = Keeper(sqlite, sqlite.path)
    await keeper.copies.backup(tmp_path / "b.db")
    await keeper.copies.restore(tmp_path / "b.db")
    pragmas = await sqlite.exclusive(
        lambda connection: [
            connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    )
    assert pragmas == ["wal", 2, 1]


async def test_a_restore_under_traffic(keeper: Keeper, tmp_path: Path) -> None:
    """Reads during a restore see the state before or after it. A write that is based on the old state is refused, since
    it could change other rows. Writes after the restore are kept.
    """
    await keeper.copies.backup(tmp_path / "b.db")
    await keeper.configuration.change(partial(put, name="later", value=9))
    traffic = Traffic(keeper.store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(traffic.write)
        for _ in range(4):
            nursery.start_soon(traffic.read)
        for _ in range(3):
            await keeper.copies.restore(tmp_path / "b.db")
        after, reads, refused = len(traffic.committed), traffic.reads, traffic.refused
        while len(traffic.committed) < after + 10 or traffic.reads < reads + 10:
            await trio.lowlevel.checkpoint()
        assert traffic.refused <= refused + 1  # one may have been pending
        nursery.cancel_scope.cancel()
    kept = await keeper.store.read(names)
    assert "later" not in kept
    assert kept[-len(traffic.committed[after:]) :] == [f"n{number}" for number in traffic.committed[after:]]
    await keeper.copies.backup(tmp_path / "c.db")
    assert content(tmp_path / "c.db") == kept


async def test_work_for_a_replaced_store_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    """Work that was submitted for the replaced store is refused until the caller acknowledges the new one."""
    await keeper.copies.backup(tmp_path / "b.db")
    send, receive = trio.open_memory_channel[BaseException | None](1)
    await keeper.store.replace(tmp_path / "b.db")
    keeper.store.submit(names, lambda _names, error: send.send_nowait(error))
    with pytest.raises(StoreError, match="replaced"):
        await keeper.store.write(names)
    keeper.store.acknowledge()
    assert await keeper.store.write(names)
    assert type(await receive.receive()) is StoreError


@pytest.mark.parametrize(
    "name", ["{}", "{}-wal", "{}.reserve", "master.key", "lock", "control.sock", "admin.token"], ids=lambda name: name
)
async def test_a_backup_never_replaces_the_store(keeper: Keeper, name: str) -> None:
    """The store's own files are refused as target, however their path is written."""
    path = keeper.place
    with pytest.raises(StoreError, match="is a file of the running service"):
        await keeper.copies.backup(path.parent / "." / name.format(path.name))
    await unchanged(keeper)


@pytest.mark.parametrize("name", ["text", "empty", "other", "missing"])
async def test_another_file_is_no_backup(keeper: Keeper, tmp_path: Path, name: str) -> None:
    """A missing file, a text and another program's database raise StoreError with the name, and nothing is changed."""
    (tmp_path / "text").write_text("no database\n" * 1000)
    (tmp_path / "empty").write_bytes(b"")
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.execute("create table songs (title text)")
        connection.commit()
    with pytest.raises(StoreError, match=name):
        await keeper.copies.restore(tmp_path / name)
    await unchanged(keeper)


async def test_a_copy_of_a_newer_version_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    """A copy of a newer version raises SchemaError before anything is changed."""
    await keeper.copies.backup(tmp_path / "b.db")
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        connection.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('sallyport', 'm9999_later', '')"
        )
        connection.commit()
    with pytest.raises(SchemaError, match="newer version"):
        await keeper.copies.restore(tmp_path / "b.db")
    await unchanged(keeper)


async def test_a_damaged_copy_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    """A damaged page is found before anything is changed."""
    await keeper.copies.backup(tmp_path / "b.db")
    octets = bytearray((tmp_path / "b.db").read_bytes())
    octets[4096 * 3 : 4096 * 6] = b"\x55" * 4096 * 3
    (tmp_path / "b.db").write_bytes(octets)
    with pytest.raises(StoreError, match=r"b\.db"):
        await keeper.copies.restore(tmp_path / "b.db")
    await unchanged(keeper)


async def test_a_copy_under_another_key_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    """Secrets under another master key are found before anything is changed."""
    await keeper.copies.backup(tmp_path / "b.db")
    keeper.wrong_key = True
    with pytest.raises(StoreError, match="another master key"):
        await keeper.copies.restore(tmp_path / "b.db")
    await unchanged(keeper)


async def unchanged(keeper: Keeper) -> None:
    """Assert that the store is as before, accepts writes, and has no additional file."""
    assert await keeper.store.read(names) == ["a", "b", "c"]
    assert keeper.forgotten == 0
    assert not list(keeper.place.parent.glob("*.part"))
    await keeper.configuration.change(partial(put, name="d", value=9))
    assert keeper.listed.value == ["a", "b", "c", "d"]


async def test_backups_of_a_directory_are_kept_for_a_while(keeper: Keeper, tmp_path: Path) -> None:
    """Each backup of a directory has its own name. The newest are kept, and other files stay."""
    directory = tmp_path / "nightly"
    directory.mkdir()
    (directory / "sallyport-notes.txt").write_text("not ours")
    made = [await keeper.copies.backup_into(directory, 3) for _ in range(5)]
    assert [len(deleted) for _, _, deleted in made] == [0, 0, 0, 1, 1]
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [path.name for path, _, _ in made[2:]] + ["sallyport-notes.txt"]
    )
    assert content(made[-1][0]) == ["a", "b", "c"]


async def test_a_new_backup_stays_though_the_clock_was_ahead(keeper: Keeper, tmp_path: Path) -> None:
    """Backups of a time that has not come yet are older than the new one. They are deleted before earlier ones."""
    for year in (2021, 2022, 2098, 2099):
        (tmp_path / f"sallyport-{year}0101T000000.000000Z.db").write_bytes(b"")
    made, _, deleted = await keeper.copies.backup_into(tmp_path, 2)
    assert [path.name[10:14] for path in deleted] == ["2098", "2099", "2021"]
    assert made.exists()


async def test_parts_of_a_killed_backup_are_deleted(keeper: Keeper, tmp_path: Path) -> None:
    """The next backup deletes the parts of a killed one, and not those of a running one."""
    for end in ("", "-journal"):
        (tmp_path / f"sallyport-20260101T000000.000000Z.db.part{end}").write_bytes(b"half")
    made: list[tuple[Path, int, list[Path]]] = []

    async def keep() -> None:
        made.append(await keeper.copies.backup_into(tmp_path, 9))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(keep)
    assert [len(deleted) for _, _, deleted in made] == [2, 0, 0]
    assert sorted(tmp_path.glob("sallyport-*")) == sorted(path for path, _, _ in made)


async def test_a_failing_backup_deletes_nothing(keeper: Keeper, tmp_path: Path) -> None:
    """A backup that fails deletes no older one."""
    with pytest.raises(StoreError):
        await keeper.copies.backup_into(tmp_path / "missing", 1)
    assert keeper.backups == 0


async def test_the_last_backup_is_remembered(keeper: Keeper, tmp_path: Path) -> None:
    """After a restart the time of the last backup comes from the audit trail, if it has one."""
    await keeper.copies.remember()
    assert keeper.backups == 0
    await keeper.copies.backup(tmp_path / "b.db")
    await keeper.copies.remember()
    assert keeper.backups == 2


async def test_revoked_rows_are_removed_from_the_copy(keeper: Keeper, tmp_path: Path) -> None:
    """`void` runs in the transaction of the restore, and gets the option that revokes tokens."""
    target, calls = tmp_path / "b.db", []

    def void(tx: Tx, revoke_tokens: bool) -> None:
        calls.append(revoke_tokens)
        tx.execute("delete from counters where name = 'a'")

    copies = Copies(
        keeper.store,
        keeper.place,
        check=lambda _tx: None,
        void=void,
        replaced=keeper.configuration.restored,
        backed_up=lambda _at: None,
    )
    await copies.backup(target)
    await copies.restore(target, revoke_tokens=True)
    assert calls == [True]
    assert list(keeper.listed.value) == ["b", "c"]
    assert content(target) == ["a", "b", "c"]

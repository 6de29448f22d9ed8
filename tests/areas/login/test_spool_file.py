"""The file of spooled records."""

import resource
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sallyport.areas.login.spool import SpoolFile, paths_of


def opened(path: Path) -> SpoolFile:
    """Return the file as a new process finds it."""
    file = SpoolFile(path)
    file.open()
    return file


def test_records_are_read_in_order(tmp_path: Path) -> None:
    """Another process reads the records in order, with rising sequences, and the name of the file is the same."""
    first = opened(tmp_path / "spool")
    first.append([b"one", b""])
    first.append([b"three"])
    later = opened(tmp_path / "spool")
    assert [(each.sequence, each.payload) for each in later.read(9)] == [(1, b"one"), (2, b""), (3, b"three")]
    assert (later.name, later.records, later.size) == (first.name, 3, (tmp_path / "spool").stat().st_size)
    later.append([b"four"])
    assert [each.sequence for each in later.read(9)] == [1, 2, 3, 4]


def test_removed_records_are_not_read_again(tmp_path: Path) -> None:
    """read continues behind the removed records. The file goes with the last one, and the next one has a new name."""
    file = opened(tmp_path / "spool")
    file.append([b"one", b"two", b"three"])
    name = file.name
    assert not file.remove(file.read(2))
    assert [each.payload for each in file.read(2)] == [b"three"]
    assert file.remove(file.read(2))
    assert not (tmp_path / "spool").exists()
    file.append([b"four"])
    assert [(each.sequence, each.payload) for each in file.read(9)] == [(1, b"four")]
    assert file.name != name


def test_an_interrupted_write_is_left_out(tmp_path: Path) -> None:
    """After a crash in the middle of a write, the records before it are read, and further records follow them."""
    path = tmp_path / "spool"
    opened(path).append([b"one"])
    interrupt(path, "insert into records values (2, zeroblob(9000)), (3, zeroblob(9000))")
    file = opened(path)
    assert (file.records, file.size) == (1, path.stat().st_size)
    file.append([b"more"])
    assert [(each.sequence, each.payload) for each in opened(path).read(9)] == [(1, b"one"), (2, b"more")]


def interrupt(path: Path, *statements: str) -> None:
    """Leave a file and its journal as they are when the machine crashes in the middle of a transaction, after a part of
    it was written."""
    other = path.with_name("other")
    if path.exists():
        shutil.copy(path, other)
    with closing(sqlite3.connect(other, isolation_level=None)) as database:
        database.execute("pragma cache_size = 1")  # pages are written before the commit
        database.execute("begin")
        for each in statements:
            database.execute(each)
        shutil.copy(other, path)
        shutil.copy(f"{other}-journal", f"{path}-journal")
    assert path.stat().st_size > other.stat().st_size


def test_a_file_without_records_is_removed(tmp_path: Path) -> None:
    """A crash before the first record leaves no file that would stop a start."""
    path = tmp_path / "spool"
    path.touch()
    opened(path)
    assert not path.exists()
    interrupt(path, "create table records (payload)", "insert into records values (zeroblob(20000))")
    file = opened(path)
    assert not path.exists()
    file.append([b"one"])
    assert [each.payload for each in file.read(9)] == [b"one"]


@pytest.mark.parametrize("size", [15, 16, 33, 100, 4095, 4096, 8192, 12287])
def test_a_damaged_file_is_put_aside(tmp_path: Path, size: int) -> None:
    """A file that lost a part does not stop a start. It is kept for an admin, and a new file begins."""
    path = tmp_path / "accounting.spool"
    opened(path).append([b"one"])
    octets = path.read_bytes()[:size]
    path.write_bytes(octets)
    file = opened(path)
    assert (tmp_path / "accounting.damaged").read_bytes() == octets
    assert (path.exists(), file.records) == (False, 0)
    file.append([b"two"])
    assert [(each.sequence, each.payload) for each in opened(path).read(9)] == [(1, b"two")]


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    """The file contains the names of users."""
    opened(tmp_path / "spool").append([b"one"])
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o600


def test_a_write_that_failed_leaves_the_former_records(tmp_path: Path) -> None:
    """If the file cannot be opened, append raises OSError, and the next one continues behind the last record."""
    path = tmp_path / "spool"
    file = opened(path)
    file.append([b"one"])
    path.rename(tmp_path / "kept")
    path.mkdir()
    with pytest.raises(OSError, match="unable to open") as caught:
        file.append([b"lost"])
    assert caught.value.filename == str(path)  # a start that fails with it names the file
    path.rmdir()
    (tmp_path / "kept").rename(path)
    file.append([b"two"])
    assert [(each.sequence, each.payload) for each in opened(path).read(9)] == [(1, b"one"), (2, b"two")]


@pytest.mark.parametrize("first", [[], [b"one"]], ids=["a new file", "a file with a record"])
def test_a_write_that_failed_at_its_end_is_replaced(tmp_path: Path, first: list[bytes]) -> None:
    """If a write is on disk, although append raised OSError, the next one replaces it."""
    path = tmp_path / "spool"
    file = opened(path)
    if first:
        file.append(first)
    opened(path).append([b"lost", b"lost too"])
    file.append([b"more"])
    assert [each.payload for each in opened(path).read(9)] == [*first, b"more"]
    assert opened(path).name == file.name


def test_a_write_that_failed_at_its_end_is_not_read(tmp_path: Path) -> None:
    """If a write is on disk, although append raised OSError, it got no answer. So it is not delivered. But a record
    that gets its number later is delivered."""
    path = tmp_path / "spool"
    file = opened(path)
    file.append([b"one"])
    opened(path).append([b"lost"])
    assert [each.payload for each in file.read(9)] == [b"one"]
    file.append([b"two"])
    assert [each.payload for each in file.read(9)] == [b"one", b"two"]


@pytest.mark.parametrize("first", [[], [b"one"]], ids=["a new file", "a file with a record"])
def test_a_full_disk_leaves_the_former_records(tmp_path: Path, first: list[bytes]) -> None:
    """If the disk is full, append raises OSError. Records can be read and removed then, and when there is room, further
    records follow."""
    path = tmp_path / "spool"
    file = opened(path)
    if first:
        file.append(first)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.size + 16_384, limits[1]))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(OSError, match="spool"):
            file.append([b"x" * 30_000])
        assert not first or [each.payload for each in file.read(9)] == first
        file.append([b"y" * 100])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [each.payload for each in opened(path).read(9)] == [*first, b"y" * 100]
    assert file.remove(file.read(9))


@pytest.mark.parametrize(
    ("worker", "workers", "own", "left"),
    [
        ("", 1, "accounting.spool", ["accounting-1.spool", "accounting-3.spool"]),
        ("1", 2, "accounting-1.spool", ["accounting-3.spool", "accounting.spool"]),
        ("1", 3, "accounting-1.spool", ["accounting.spool"]),
        ("2", 2, "accounting-2.spool", []),
    ],
    ids=["one process", "two workers", "three workers", "the second worker"],
)
def test_the_first_worker_gets_the_files_that_are_left(
    tmp_path: Path, worker: str, workers: int, own: str, left: list[str]
) -> None:
    """The first worker, or the only process, gets the files of workers that do not run any more."""
    for name in ("accounting.spool", "accounting-1.spool", "accounting-3.spool"):
        (tmp_path / name).touch()
    assert paths_of(tmp_path, worker, workers) == (tmp_path / own, [tmp_path / each for each in left])

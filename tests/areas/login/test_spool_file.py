"""The file of spooled records."""

from pathlib import Path

import pytest

from sallyport.areas.login.spool_file import SpoolFile, paths_of


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


@pytest.mark.parametrize("lost", range(1, 30))
def test_a_cut_frame_is_left_out(tmp_path: Path, lost: int) -> None:
    """After a crash in the middle of a write, the whole frames are read, and further records follow them."""
    path = tmp_path / "spool"
    opened(path).append([b"one", b"0123456789abcdef"])
    path.write_bytes(path.read_bytes()[:-lost])
    file = opened(path)
    file.append([b"more"])
    assert [each.payload for each in opened(path).read(9)] == [b"one", b"more"]


@pytest.mark.parametrize("size", range(0, 34))
def test_a_file_without_records_is_removed(tmp_path: Path, size: int) -> None:
    """A crash before the first record leaves no file that would stop a start."""
    path = tmp_path / "spool"
    opened(path).append([b"one"])
    path.write_bytes(path.read_bytes()[:size])
    file = opened(path)
    assert not path.exists()
    file.append([b"one"])
    assert [each.payload for each in file.read(9)] == [b"one"]


def test_a_write_that_failed_leaves_the_former_records(tmp_path: Path) -> None:
    """If the disk is full, append raises OSError, and the next one continues behind the last whole record."""
    path = tmp_path / "spool"
    file = opened(path)
    file.append([b"one"])
    path.rename(tmp_path / "kept")
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        file.append([b"lost"])
    path.rmdir()
    (tmp_path / "kept").rename(path)
    file.append([b"two"])
    assert [(each.sequence, each.payload) for each in opened(path).read(9)] == [(1, b"one"), (2, b"two")]


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

"""The data directory's lock, and the space that is kept in reserve on its disk."""

import os
import re
import stat
from pathlib import Path

import pytest

from sallyport.base.errors import Locked, StartError
from sallyport.base.listening import process_name
from sallyport.store.directory import Reserve, open_data_directory

MIB = 1 << 20


def test_a_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """A new data directory has mode 0700, its lock 0600; folders above it are made too."""
    path = tmp_path / "new" / "data"
    descriptor = open_data_directory(path)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE((path / "lock").stat().st_mode) == 0o600
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)


def test_one_process_owns_a_directory(tmp_path: Path) -> None:
    """While the lock is held a second one is refused; once it is let go, however that came, it is free."""
    first = open_data_directory(tmp_path)
    with pytest.raises(Locked, match=re.escape(f"{tmp_path} is in use by {process_name(os.getpid())}")):
        open_data_directory(tmp_path)
    os.close(first)
    os.close(open_data_directory(tmp_path))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in its place is a StartError that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="file"):
        open_data_directory(tmp_path / "file" / "data")


def test_a_reserve_holds_space_until_it_is_released(tmp_path: Path) -> None:
    """refill takes the space for real, release gives it back once, and it can be taken again."""
    path = tmp_path / "reserve"
    reserve = Reserve(path, MIB)
    assert reserve.released
    for _ in range(2):
        reserve.refill()
        assert (reserve.released, path.stat().st_size) == (False, MIB)
        assert path.stat().st_blocks * 512 >= MIB
        assert (reserve.release(), reserve.released, path.exists()) == (True, True, False)
        assert not reserve.release()


def test_a_reserve_that_is_held_is_left_alone(tmp_path: Path) -> None:
    """refill does nothing while the space is held."""
    reserve = Reserve(tmp_path / "reserve", MIB)
    reserve.refill()
    before = (tmp_path / "reserve").stat()
    reserve.refill()
    after = (tmp_path / "reserve").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("size", [0, MIB // 2, 3 * MIB])
def test_a_reserve_of_before_is_cut_to_size(tmp_path: Path, size: int) -> None:
    """The first refill after a start makes the file as large as it is set to be now; none for 0."""
    path = tmp_path / "reserve"
    Reserve(path, MIB).refill()
    Reserve(path, size).refill()
    assert (path.stat().st_size if path.exists() else 0) == size


def test_a_reserve_never_raises(tmp_path: Path) -> None:
    """Where the folder is gone the space is not held, and nobody is disturbed."""
    reserve = Reserve(tmp_path / "gone" / "reserve", MIB)
    reserve.refill()
    assert reserve.released
    assert not reserve.release()

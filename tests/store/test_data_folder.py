"""The lock of the data directory, and the reserved space on its disk."""

import os
import re
import stat
from pathlib import Path

import pytest

from sallyport.base.errors import Locked, StartError
from sallyport.settings.listening import process_name
from sallyport.store.data_folder import Reserve, open_data_directory

MIB = 1 << 20


def test_a_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """A new data directory has mode 0700, its lock 0600. Missing parents are made too."""
    path = tmp_path / "new" / "data"
    descriptor = open_data_directory(path)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE((path / "lock").stat().st_mode) == 0o600
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)


def test_one_process_owns_a_directory(tmp_path: Path) -> None:
    """While the lock is held a second one is refused. It is free after its release or the end of its process."""
    first = open_data_directory(tmp_path)
    with pytest.raises(Locked, match=re.escape(f"{tmp_path} is in use by {process_name(os.getpid())}")):
        open_data_directory(tmp_path)
    os.close(first)
    os.close(open_data_directory(tmp_path))


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """A file in the directory's place raises StartError with its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="file"):
        open_data_directory(tmp_path / "file" / "data")


def test_a_reserve_holds_space_until_it_is_released(tmp_path: Path) -> None:
    """refill allocates the space, release frees it once, and it can be allocated again."""
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
    """refill does nothing while the space is allocated."""
    reserve = Reserve(tmp_path / "reserve", MIB)
    reserve.refill()
    before = (tmp_path / "reserve").stat()
    reserve.refill()
    after = (tmp_path / "reserve").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("size", [0, MIB // 2, 3 * MIB])
def test_a_reserve_of_before_is_cut_to_size(tmp_path: Path, size: int) -> None:
    """The first refill after a start changes the file to the configured size; 0 removes it."""
    path = tmp_path / "reserve"
    Reserve(path, MIB).refill()
    Reserve(path, size).refill()
    assert (path.stat().st_size if path.exists() else 0) == size


def test_a_reserve_never_raises(tmp_path: Path) -> None:
    """A missing directory raises no error; the space is then not reserved."""
    reserve = Reserve(tmp_path / "gone" / "reserve", MIB)
    reserve.refill()
    assert reserve.released
    assert not reserve.release()

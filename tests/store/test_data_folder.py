"""The lock of the data directory, and the reserved space on its disk."""

import os
import re
import stat
from pathlib import Path

import pytest

from sallyport.base.errors import Locked, StartError
from sallyport.settings.listening import process_name
from sallyport.store.data_folder import LOCK, Reserve, check_lock, installation_id, open_data_directory

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


def test_the_lock_of_another_process_is_found(tmp_path: Path) -> None:
    """A command that only reads finds out whether a process owns the directory, and creates no file in it."""
    check_lock(tmp_path)
    assert list(tmp_path.iterdir()) == []
    descriptor = open_data_directory(tmp_path)
    with pytest.raises(Locked, match=re.escape(f"{tmp_path} is in use by {process_name(os.getpid())}")):
        check_lock(tmp_path)
    os.close(descriptor)
    check_lock(tmp_path)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StartError, match="lock"):
        check_lock(tmp_path)


def test_a_directory_keeps_its_id(tmp_path: Path) -> None:
    """The id is made once, differs from that of another directory, and stays through restarts and upgrades."""
    (tmp_path / "other").mkdir()
    first = installation_id(tmp_path)
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert installation_id(tmp_path) == first != installation_id(tmp_path / "other")
    (tmp_path / "installation").write_text("0123456789abcdef\n")  # as an earlier release has written it
    assert installation_id(tmp_path) == "0123456789abcdef"


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


class ReserveOnDisk(Reserve):
    """A reserve on a disk with a given number of free octets."""

    free = 0

    def _free(self) -> int:
        return self.free


def test_a_disk_that_is_nearly_full_is_not_reserved(tmp_path: Path) -> None:
    """A new reserve leaves free space of its own size. What a reserve file of before has already counts."""
    path = tmp_path / "reserve"
    reserve = ReserveOnDisk(path, MIB)
    reserve.free = 2 * MIB - 1
    reserve.refill()
    assert (reserve.released, path.exists()) == (True, False)
    Reserve(path, MIB // 2).refill()
    reserve.free = MIB // 2 + MIB - 1
    reserve.refill()
    assert reserve.released
    reserve.free += 1
    reserve.refill()
    assert (reserve.released, path.stat().st_size) == (False, MIB)
    again = ReserveOnDisk(path, MIB)
    again.refill()
    assert not again.released


def test_a_reserve_of_before_is_released(tmp_path: Path) -> None:
    """A start on a full disk can free the space of a reserve that the settings do not want any more."""
    Reserve(tmp_path / "reserve", MIB).refill()
    assert Reserve(tmp_path / "reserve", 0).release()
    assert list(tmp_path.iterdir()) == []


def test_a_reserve_never_raises(tmp_path: Path) -> None:
    """A missing directory raises no error; the space is then not reserved. It does not count as a full disk."""
    reserve = Reserve(tmp_path / "gone" / "reserve", MIB)
    reserve.refill()
    assert reserve.released
    assert not reserve.release()
    assert reserve.has_room(MIB)

"""Files that are written completely or not at all."""

from pathlib import Path

import pytest

from sallyport.base.errors import ConfigError
from sallyport.host import disk


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The written file has mode 0600, and no temporary file is left. If the path is a link, the link is replaced and
    not followed.
    """
    path, target = tmp_path / "file", tmp_path / "target"
    target.write_text("untouched")
    path.symlink_to(target)
    disk.write(path, b"new")
    assert path.read_bytes() == b"new" and not path.is_symlink()
    assert target.read_text() == "untouched"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "target"]


@pytest.mark.parametrize("name", ["directory", "none/file"])
def test_a_failed_write_changes_nothing(tmp_path: Path, name: str) -> None:
    """If a file cannot be written, the error names the file, and no temporary file is left."""
    (tmp_path / "directory").mkdir()
    with pytest.raises(ConfigError, match=str(tmp_path / name)):
        disk.write(tmp_path / name, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["directory"]


def test_an_interrupted_write_changes_nothing(tmp_path: Path) -> None:
    """If the write fails, the old file is kept, and no temporary file is left."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt), disk.replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    """The file exists only after the block has ended. If another file is given as model, the new file has its owner."""
    path = tmp_path / "file"
    with disk.replacing(path, mode=0o640, like=tmp_path) as file:
        file.write(b"first ")
        assert not path.exists()
        file.write(b"second")
    assert path.read_bytes() == b"first second"
    assert path.stat().st_mode & 0o777 == 0o640

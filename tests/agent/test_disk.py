"""Files that are there as a whole or not at all."""

from pathlib import Path

import pytest

from sallyport.agent import disk
from sallyport.agent.disk import StateFile
from sallyport.base.errors import ConfigError, Locked


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """With its mode, and nothing is left beside it; a link in its place is replaced, not followed."""
    path, target = tmp_path / "file", tmp_path / "target"
    target.write_text("untouched")
    path.symlink_to(target)
    disk.write(path, b"new")
    assert path.read_bytes() == b"new" and not path.is_symlink()
    assert target.read_text() == "untouched"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "target"]


def test_what_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    """The error names the file; nothing is left beside it."""
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "directory", tmp_path / "none" / "file"):
        with pytest.raises(ConfigError, match=str(path)):
            disk.write(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["directory"]


def test_a_state_is_found_again(tmp_path: Path) -> None:
    """What was saved last; its directory is made, for the agent's user alone."""
    state = StateFile(tmp_path / "made" / "state.json")
    assert state.load() == {}
    for value in ({"cursor": "ä"}, {"cursor": None}):
        state.save(value)
        assert StateFile(tmp_path / "made" / "state.json").load() == value
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_state_that_is_none(tmp_path: Path, content: bytes) -> None:
    """It is as if nothing had been saved, and can be saved again."""
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert StateFile(path).load() == {}
    StateFile(path).save({"a": 1})
    assert StateFile(path).load() == {"a": 1}


def test_one_agent_alone(tmp_path: Path) -> None:
    """A second one is refused for as long as the first is there."""
    directory = tmp_path / "state"
    with disk.alone(directory), pytest.raises(Locked, match="another agent"), disk.alone(directory):
        pass
    with disk.alone(directory):
        assert [each.name for each in directory.iterdir()] == ["lock"]

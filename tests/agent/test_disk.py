"""What an agent keeps on its host."""

from pathlib import Path

import pytest

from sallyport.agent import disk
from sallyport.agent.disk import StateFile
from sallyport.base.errors import Locked


def test_a_state_is_found_again(tmp_path: Path) -> None:
    """A saved state is loaded again; its directory is created with mode 0700."""
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

"""The store in this process: what ends its thread is told to who works with it."""

from pathlib import Path

import pytest
import trio

from sallyport.base.config import Settings
from sallyport.cli.local import Local


@pytest.fixture
def local(tmp_path: Path) -> Local:
    """The store of a new data directory, open."""
    return Local(Settings(data_dir=tmp_path / "data", disk_reserve_mib=0), {})


def end(local: Local) -> None:
    """End the store's thread by an error."""

    async def fail() -> None:
        raise OSError("the disk is gone")

    trio.from_thread.run_sync(trio.lowlevel.spawn_system_task, fail, trio_token=local._trio)


def test_a_call_raises_what_ended_the_store(local: Local) -> None:
    """The error itself and not its consequence; closing afterwards has nothing to add."""
    end(local)
    with pytest.raises(trio.TrioInternalError) as raised:
        while True:
            local.call({"command": "tenant.list"})
    assert isinstance(raised.value.__cause__, BaseException)
    local.close()


def test_closing_raises_what_no_call_has(local: Local) -> None:
    """An error after the last call is not lost."""
    end(local)
    with pytest.raises(trio.TrioInternalError):
        local.close()

"""The store in the process of a command. An error that ends the store's thread is raised to the caller."""

from pathlib import Path

import pytest
import trio

from sallyport.cli.local import Local
from sallyport.settings.settings import Settings


@pytest.fixture
def local(tmp_path: Path) -> Local:
    """Return the open store of a new data directory."""
    return Local(Settings(data_dir=tmp_path / "data", disk_reserve_mib=0), {})


def fail_store(local: Local) -> None:
    """End the store's thread with an error."""

    async def fail() -> None:
        raise OSError("the disk is gone")

    trio.from_thread.run_sync(trio.lowlevel.spawn_system_task, fail, trio_token=local._trio)


def test_a_call_raises_the_error_that_ended_the_store(local: Local) -> None:
    """A call raises the original error, not an error that followed from it. Closing the store afterwards raises
    nothing.
    """
    fail_store(local)
    with pytest.raises(trio.TrioInternalError) as raised:
        while True:
            local.call({"command": "tenant.list"})
    assert isinstance(raised.value.__cause__, BaseException)
    local.close()


def test_closing_raises_an_error_that_no_call_raised(local: Local) -> None:
    """If the store's thread ends with an error after the last call, closing the store raises it."""
    fail_store(local)
    with pytest.raises(trio.TrioInternalError):
        local.close()

"""Tests of work that is repeated."""

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from sallyport.base.errors import StoreError
from sallyport.nodes.periodic import every


async def test_the_work_runs_at_once_and_again_after_each_end(autojump_clock: MockClock) -> None:
    """If the work takes one second and the pause is two seconds, the work starts every three seconds."""
    started: list[float] = []

    async def work() -> None:
        started.append(trio.current_time())
        await trio.sleep(1)

    begin = trio.current_time()
    with trio.move_on_after(7):
        await every(2, work, failure="work_failed")
    assert [at - begin for at in started] == [0, 3, 6]


async def test_a_failure_is_logged_and_the_work_runs_again(autojump_clock: MockClock) -> None:
    """An error of one of the service's own types is logged as a warning with the given event name."""
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise StoreError("disk full")

    with capture_logs() as logs, trio.move_on_after(2.5):
        await every(2, work, failure="work_failed")
    assert runs == 2
    assert logs == [{"event": "work_failed", "error": "disk full", "log_level": "warning"}]


async def test_an_unexpected_exception_propagates(autojump_clock: MockClock) -> None:
    async def work() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        await every(2, work, failure="work_failed")

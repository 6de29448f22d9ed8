"""The settled time: a clock that is wrong for a while deletes nothing, also across restarts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sallyport.base.clock import SECOND
from sallyport.nodes.settled import SettledClock
from sallyport.store.model import Engine
from tests.areas import SetClock, running_engine

HOUR, DAY = 3600.0, 86_400.0


class Machine:
    """A machine whose service runs: its clock of the day, its monotonic clock, and the settled time."""

    def __init__(self, store: Engine) -> None:
        self.store, self.clock, self.uptime_s = store, SetClock(), 0.0
        self.start()

    def start(self) -> None:
        """Start the service again, as after a stop without a warning."""
        self.settled = SettledClock(self.store, self.clock, lambda: self.uptime_s)

    async def run(self, seconds: float) -> None:
        """Let the service run for a time, and look every ten minutes."""
        while seconds > 0:
            await self.settled.look()
            step = min(600, seconds)
            self.clock.pass_by(step)
            self.uptime_s += step
            seconds -= step
        await self.settled.look()

    @property
    def behind_s(self) -> float:
        """By how many seconds the settled time is behind the clock of the day."""
        return (self.clock() - self.settled()) / SECOND


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """Yield a machine whose service has run for two hours."""
    async with running_engine(tmp_path) as store:
        machine = Machine(store)
        assert machine.settled() == 0, "before the first look"
        await machine.run(2 * HOUR)
        assert machine.behind_s == 0
        yield machine


@pytest.mark.parametrize("restarts", [False, True], ids=["while the service runs", "with restarts"])
async def test_a_clock_that_is_wrong_for_hours(machine: Machine, restarts: bool) -> None:
    """A clock that is 90 days ahead changes the settled time only if it stays so for a day of running, also if the
    service is started again in between. The log has at most one warning for each start."""
    for _ in range(2):
        machine.clock.pass_by(90 * DAY)
        if restarts:
            machine.start()
        with capture_logs() as logged:
            await machine.run(12 * HOUR)
        assert [each["event"] for each in logged] == ["clock_jumped"]
        assert 90 * DAY <= machine.behind_s <= 90 * DAY + HOUR
        machine.clock.pass_by(-90 * DAY)
        await machine.run(HOUR)
        assert machine.behind_s == 0


async def test_a_difference_that_lasts(machine: Machine) -> None:
    """After 90 days without the service, rows are deleted by the time of the day from the second day on. Restarts do
    not prolong this."""
    machine.clock.pass_by(90 * DAY)
    for _ in range(5):
        machine.start()
        await machine.run(4 * HOUR)
        assert machine.behind_s > 89 * DAY
    machine.start()
    with capture_logs() as logged:
        await machine.run(10 * HOUR)
    assert machine.behind_s == 0
    assert [each["event"] for each in logged] == ["clock_jump_accepted"]


async def test_a_clock_that_is_set_back(machine: Machine) -> None:
    """A clock that is a week behind deletes less, and is no jump ahead when it is set right. A step of an hour is
    followed at once."""
    for step in (-7 * DAY, 7 * DAY, HOUR, -HOUR):
        machine.clock.pass_by(step)
        await machine.run(HOUR)
        assert machine.behind_s == 0


async def test_a_short_stop(machine: Machine) -> None:
    """After a stop of some hours, the time of the day counts at once."""
    machine.start()
    machine.clock.pass_by(20 * HOUR)
    await machine.run(60)
    assert machine.behind_s == 0

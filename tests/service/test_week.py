"""A day of `make week`: the whole service in simulated time."""

from pathlib import Path

from trio.testing import MockClock

from tests.service.week import pass_days


async def test_a_day_keeps_every_promise(tmp_path: Path, mock_clock: MockClock) -> None:
    """Logins by several ways, tokens, a lock-out, a revert of enforce mode, a repeated second and wrong clocks."""
    counts = await pass_days(tmp_path, mock_clock, 1, seed=1)
    assert {what: counts[what] for what in ("PAP", "leap seconds", "wrong clocks", "lock-outs", "reverts")} == {
        "PAP": 25,
        "leap seconds": 1,
        "wrong clocks": 2,
        "lock-outs": 1,
        "reverts": 1,
    }

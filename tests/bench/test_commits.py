"""The benchmark of commits measures what it says."""

from pathlib import Path

import pytest

from .commits import measure, syncing
from .settings import Settings

pytestmark = pytest.mark.bench


def test_bare_writes_are_measured(tmp_path: Path) -> None:
    """Each write is synchronized, and the file keeps its size."""
    with syncing(tmp_path, 4096, pause_s=0) as taken:
        while len(taken) < 20:
            pass
    assert min(taken) > 0
    assert (tmp_path / "bare").stat().st_size == 4 << 20


@pytest.mark.system
def test_logins_are_compared_with_bare_writes(tmp_path: Path) -> None:
    """The report has both measurements and both aims."""
    settings = Settings(directory=tmp_path, rounds=1, seconds=0.4, requests=1000, servers=())
    told = measure(settings, 2)
    assert "5 turns with one login outstanding" in told
    assert "| one outstanding, p50 µs" in told
    assert "| one outstanding: (login - 150 µs) / fdatasync" in told
    assert "| p99.9 of the logins - p99.9 of fdatasync, in ms" in told

"""The benchmark of a steady load, run for a few seconds."""

from pathlib import Path

import pytest

from .steady import PARTS, measure


@pytest.mark.bench
@pytest.mark.system
def test_a_few_seconds(tmp_path: Path) -> None:
    """Each kind of work is done, and the table has a line for each tenth of the time."""
    told = measure(tmp_path, seconds=6, agents=3, entries=50)
    assert len(told.splitlines()) == 1 + 1 + 2 + PARTS
    for kind in ("accounting records", "calls of the API", "imports", "requests of agents", "scrapes"):
        assert kind in told

"""The benchmark of agents, run with a few agents."""

from pathlib import Path

import pytest

from .agents import measure


@pytest.mark.bench
@pytest.mark.system
def test_a_few_agents(tmp_path: Path) -> None:
    """The agents enrol, wait, report, and receive changes."""
    told = measure(tmp_path, agents=5, seconds=6)
    assert "| agents that wait, each reporting every 30 s | 5 |" in told
    assert "| connections lost | 0 |" in told

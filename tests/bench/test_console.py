"""The benchmark of the console, with a few rows."""

from pathlib import Path

import pytest

from tests.bench.console import measure
from tests.bench.console_store import Size
from tests.bench.settings import Settings

FEW = Size(
    devices=40, stations=40, sessions=100, events=200, audit=40, users=200, instances=40, groups=2, people=40,
    credentials=10, wallets=2, dids=3, schemas=2, directory_groups=2, agents=10, lockouts=10, bypass=10, clients=3,
    rules=2,
)  # fmt: skip


@pytest.mark.bench
@pytest.mark.system
def test_each_page_is_measured(tmp_path: Path) -> None:
    """Each page of the console is requested without an error, and logins are measured beside it."""
    told = measure(tmp_path, FEW, Settings(tmp_path, rounds=1, seconds=0.4, requests=0, servers=()))
    assert "/devices?domain=" in told
    assert "with the console" in told
    assert "beside that of another process" in told

"""The benchmark of busy API connections, with a few rows."""

from pathlib import Path

import pytest

from tests.bench.api import measure
from tests.bench.settings import Settings
from tests.bench.test_console import FEW


@pytest.mark.bench
@pytest.mark.system
def test_logins_are_measured_beside_the_api(tmp_path: Path) -> None:
    """Logins are measured alone and beside the connections, and each request is answered."""
    told = measure(tmp_path, FEW, Settings(tmp_path, rounds=1, seconds=0.4, requests=0, servers=()))
    assert "beside 16 connections" in told

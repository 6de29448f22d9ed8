"""The benchmark of shadow mode, run with a few logins."""

from pathlib import Path

import pytest

from .shadow import measure


@pytest.mark.bench
@pytest.mark.system
def test_a_few_logins(tmp_path: Path) -> None:
    """Clients are imported, a log is recorded, and decided again, while logins are answered."""
    told = measure(tmp_path, logins=300, users=5, clients=20)
    assert told.startswith("300 logins of 5 people") and "decided again, seconds" in told

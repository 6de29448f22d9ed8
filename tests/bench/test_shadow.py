"""The benchmark of shadow mode, run with a few logins."""

from pathlib import Path

import pytest

from .shadow import measure


@pytest.mark.bench
def test_a_few_logins(tmp_path: Path) -> None:
    """A log is recorded and decided again while logins are answered, and the aims are in the table."""
    told = measure(tmp_path, logins=300, users=5)
    assert told.startswith("300 logins of 5 people") and "decided again, seconds" in told

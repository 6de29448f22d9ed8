"""The benchmark of imports from a file, run with a few people."""

from pathlib import Path

import pytest

from .directory_file import measure


@pytest.mark.bench
@pytest.mark.system
def test_a_few_people(tmp_path: Path) -> None:
    """The people are imported twice while logins are answered."""
    told = measure(tmp_path, entries=300)
    assert told.startswith("300 entries") and told.count("import") >= 2 and "the same again" in told

"""The benchmark of directories, run with a few people."""

from pathlib import Path

import pytest

from tests.peers.programs import needs

from .directory import measure


@pytest.mark.bench
@pytest.mark.system
@pytest.mark.peer
@needs("slapd", "slapadd", "ldapsearch")
def test_a_few_people(tmp_path: Path) -> None:
    """Each program reads all people, and the service imports them."""
    told = measure(tmp_path, entries=1000, rounds=1)
    assert [line.split("|")[1].strip() for line in told.splitlines()[2:]] == [
        "`ldapsearch`",
        "Sallyport's reader, everything",
        "Sallyport's reader, what has changed: nothing",
        "Sallyport, into its store",
    ]

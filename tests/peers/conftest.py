"""Fixtures that several modules share, since they take half a minute to set up."""

from collections.abc import Iterator

import pytest

from tests.peers.samba import Corp, running_corp


@pytest.fixture(scope="session")
def corp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corp]:
    """Yield a domain of Active Directory and a host that has joined it. Skip without Samba (`samba.needs_samba`)."""
    with running_corp(tmp_path_factory.mktemp("corp")) as corp:
        yield corp

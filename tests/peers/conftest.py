"""Fixtures that several modules share, because they take half a minute to set up."""

from collections.abc import Iterator

import pytest

from tests.peers.samba import Corp, running_corp


@pytest.fixture(scope="session")
def corp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corp]:
    """Yield a domain of Active Directory and a host that has joined it.

    Skip the test if Samba is missing (`samba.needs_samba`).
    """
    with running_corp(tmp_path_factory.mktemp("corp")) as corp:
        yield corp

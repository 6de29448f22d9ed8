"""A certificate for the tests of one run."""

from pathlib import Path

import pytest

from sallyport.web.server import Tls
from tests.web.serving import make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A self-signed certificate and its key."""
    folder: Path = tmp_path_factory.mktemp("tls")
    return make_certificate(folder)

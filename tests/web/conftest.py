"""The certificate of the HTTPS tests."""

from pathlib import Path

import pytest

from sallyport.web.server import Tls
from tests.web.serving import make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """Return a self-signed certificate and its key, which are made once for a test run."""
    folder: Path = tmp_path_factory.mktemp("tls")
    return make_certificate(folder)

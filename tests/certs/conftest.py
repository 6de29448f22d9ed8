"""An authority that the tests of a run share, because generating keys takes long. Each test works on a copy."""

import shutil
from pathlib import Path

import pytest

from sallyport.certs.folder import CertificateFolder, present

HOST = "radius.example.org"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with an authority and the certificates of the server, a proxy and ann."""
    data_dir = tmp_path_factory.mktemp("made")
    folder = CertificateFolder(data_dir)
    folder.make("Tests CA", [HOST, "192.0.2.7", "localhost"], present())
    folder.issue("proxy.example.org", present())
    folder.issue("ann@example.org", present())
    return data_dir


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the data directory."""
    shutil.copytree(made / "certs", tmp_path / "certs")
    return tmp_path


@pytest.fixture
def folder(data_dir: Path) -> CertificateFolder:
    """Return the certificates of the data directory."""
    return CertificateFolder(data_dir)

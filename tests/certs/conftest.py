"""An authority that the tests of a run share, because generating keys takes long. Each test works on a copy."""

import shutil
from pathlib import Path

import pytest

from sallyport.certs.directory import Directory, present

HOST = "radius.example.org"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with an authority and the certificates of the server, a proxy and ann."""
    data_dir = tmp_path_factory.mktemp("made")
    directory = Directory(data_dir)
    directory.make("Tests CA", [HOST, "192.0.2.7", "localhost"], present())
    directory.issue("proxy.example.org", present())
    directory.issue("ann@example.org", present())
    return data_dir


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the data directory."""
    shutil.copytree(made / "certs", tmp_path / "certs")
    return tmp_path


@pytest.fixture
def directory(data_dir: Path) -> Directory:
    """Return the certificates of the data directory."""
    return Directory(data_dir)

"""Fixtures of the profile tests: areas, and an authority that the tests of a run share."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from sallyport.areas.profiles.profile import Method, Profile, Trust
from sallyport.areas.profiles.trust import ServerTrust
from sallyport.certs.credentials import Certificates
from sallyport.certs.folder import CertificateFolder, present
from tests.areas import areas, clock

__all__ = ["areas", "clock"]

HOST = "radius.example.org"
HOSTILE = ("a\"b&c<d>'e\\f]]>", " Büro 😀 ", "x;y=z#", "]]><!--", "$(id)`id`", "{{ 7 * 7 }}")
"""SSIDs with the characters that end a text, a quote, a line's value or an element."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with an authority, and the server's certificate."""
    data_dir = tmp_path_factory.mktemp("authority")
    CertificateFolder(data_dir).make("Tests CA", [HOST, "192.0.2.7"], present())
    return data_dir


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the data directory."""
    shutil.copytree(made / "certs", tmp_path / "certs")
    return tmp_path


def trust_in(data_dir: Path) -> ServerTrust:
    """Return the reader of the server's certificate in a data directory."""
    certificates = Certificates(data_dir, look_s=0)
    return ServerTrust(certificates.server, lambda _domain_id: None, CertificateFolder(data_dir).ca)


def profile(method: Method = Method.PEAP, **fields: object) -> Profile:
    """Return a profile with these fields."""
    values = {"ssids": ("Office",), "outer_identity": "anonymous@corp.example", "method": method, **fields}
    return Profile(1, 1, "Office", UUID(int=7), **values)  # type: ignore[arg-type]


@pytest.fixture
def trust(made: Path) -> Trust:
    """Return what devices must know of the server."""
    return trust_in(made).of(profile())

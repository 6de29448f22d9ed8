"""Fixtures with certificates and users for conversations."""

from pathlib import Path

import pytest

from sallyport.radius.eap.server import TlsConfiguration, TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.radius.eap.certificates import Authority, Issued
from tests.radius.eap.users import Users

USER, PASSWORD = b"ann", "pass wörd".encode()


class Site:
    """An authority, the certificates of a server and of a user, and the users with their passwords."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        server = self.authority.certificate("radius.example.com")
        self.configuration = TlsConfiguration(
            ServerCertificate.read(server.file, server.file), ca_file=self.authority.file
        )
        self.server = TlsServer(self.configuration)
        self.issued: Issued = self.authority.certificate("ann")
        self.users = Users({USER: PASSWORD})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site for one test."""
    return Site(tmp_path)

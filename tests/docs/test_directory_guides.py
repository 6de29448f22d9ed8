"""The commands of docs/guides/first-factors.md and docs/guides/directories.md work with an OpenLDAP server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import Walk, problem, walked
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.slapd import PEOPLE, SERVICE_PASSWORD, Slapd, slapd

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify")]

GUEST = """dn: uid=guest,dc=example,dc=org
objectClass: inetOrgPerson
uid: guest
cn: Guest
sn: Guest
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """Yield an LDAP server that has a certificate of its own authority."""
    with slapd(tmp_path_factory.mktemp("slapd"), Authority("The directory's CA")) as directory:
        yield directory


@pytest.mark.parametrize("page", ["docs/guides/first-factors.md", "docs/guides/directories.md"])
def test_the_commands_of_a_page_work(directory: Slapd, page: str, tmp_path: Path, program: Path) -> None:
    """Each command ends with the expected status and prints the output that the page shows."""
    files = {
        "ca.pem": directory.authority.pem,
        "dir.password": SERVICE_PASSWORD,
        "ann.password": PEOPLE["ann"],
        "radius.secret": "a shared secret",
        "people.ldif": GUEST,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    walk = Walk(page, replace={"ldaps://dc1.example.com": directory.secure_url})
    with walked(walk, tmp_path, program) as done:
        assert problem(walk, done) == ""

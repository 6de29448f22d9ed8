"""eapol_test with certificates of the accounts of Active Directory (Samba), set up as in the guide "AD CS and wired
802.1X"."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.areas.authorities.made import MadeAuthority, issued
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.peers.samba import BASE, COMPUTER, DC_NAME, PASSWORD, Corp, needs_samba
from tests.running_service import RunningService

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_samba, needs("eapol_test")]

SECRET = "between switch and server"
STAFF_VLAN, COMPUTER_VLAN = "30", "20"


class Wired:
    """A service on the joined host whose domain trusts the authority of Active Directory. sids: the SIDs of accounts
    by name."""

    def __init__(self, service: RunningService, corp: Corp, directory: Path) -> None:
        self.service, self.corp, self.directory = service, corp, directory
        self.sids = {name: self._sid(name) for name in ("ann", "bob", "off", COMPUTER)}
        self.authority = MadeAuthority("Corp Issuing CA")
        (directory / "adcs.pem").write_text(self.authority.pem)
        issuer = directory / "dc-ca.pem"
        issuer.write_text(corp.authority.pem)
        ok, prefix = service.ok, self.sids["ann"].rpartition("-")[0]
        ok("cert", "init", "--host", "radius.corp.example")
        ok("domain", "add", "corp", "--org", "1", "--tenant", "1")
        ok("domain", "set", "corp", "--realm", "corp.example", "--disconnect-on-revoke", "yes")
        ok(
            "domain", "first-factor", "corp", "ldap", "--ldap-server", f"ldaps://{DC_NAME}", "--base-dn", BASE,
            "--bind-dn", "reader@corp.example", "--bind-password", "-", "--ca-certificate", str(issuer),
            input=PASSWORD,
        )  # fmt: skip
        ok(
            "authority", "add", "AD CS", "--domain", "corp", "--file", str(directory / "adcs.pem"), "--by", "sid",
            "--kind", "people", "--kind", "machines", "--sid-prefix", prefix,
        )  # fmt: skip
        ok("domain", "set", "corp", "--certificate-names", "strong")
        rule = ("--domain", "corp", "--action", "allow", "--medium", "Ethernet")
        ok("rule", "add", "computers", *rule, "--kind", "machine", "--vlan", COMPUTER_VLAN)
        ok("rule", "add", "staff", *rule, "--kind", "user", "--group", "Staff", "--vlan", STAFF_VLAN)
        service.add_client("switch", "127.0.0.1", SECRET, "corp")

    def _sid(self, account: str) -> str:
        kind = "computer" if account == COMPUTER else "user"
        shown = self.corp.dc.run("samba-tool", kind, "show", account, "--attributes=objectSid")
        found = re.search(r"^objectSid: (S-[0-9-]+)$", shown, re.MULTILINE)
        assert found, shown
        return found[1]

    def log_in(self, sid: str, *names: x509.GeneralName) -> tuple[bool, str, str]:
        """Log in at a switch with a certificate. Return whether eapol_test succeeded, its output, and the reason."""
        file = self.directory / "client.pem"
        issued(self.authority, file, "Somebody", names=names, sid=sid)
        lines = (
            f'ca_cert="{self.service.data_dir / "certs" / "ca.pem"}"', "eap=TLS", 'identity="anonymous"',
            'domain_match="radius.corp.example"', f'client_cert="{file}"', f'private_key="{file}"',
        )  # fmt: skip
        with self.corp.host.inside():
            output = eapol_test(
                self.directory, self.service.ports.auth, SECRET, "\n".join(lines), "-N", "61:d:15"
            )  # NAS-Port-Type Ethernet
        return SUCCESS in output, output, self.event()[1]

    def event(self) -> tuple[str, str, str, str]:
        """Return the user, the reason, the authority and the naming field of the newest event."""
        sql = "select user_name, reason, authority, named_by from events order by id desc limit 1"
        return tuple(self.service.rows(sql)[0])  # type: ignore[return-value]


@pytest.fixture(scope="module")
def wired(corp: Corp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    """Yield one service for all tests."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0"}
    service = RunningService(tmp_path_factory.mktemp("wired"), settings, wrapper=corp.host.wrapper)
    try:
        service.start()
        yield Wired(service, corp, tmp_path_factory.mktemp("files"))
    finally:
        service.kill()


def test_a_computer_logs_in_by_its_sid(wired: Wired) -> None:
    """The computer gets the VLAN of computers, whatever name its certificate has besides."""
    is_accepted, output, _ = wired.log_in(wired.sids[COMPUTER], x509.DNSName("pc1.corp.example"))
    assert is_accepted, output
    assert _vlan(output) == COMPUTER_VLAN
    assert wired.event()[2:] == ("AD CS", "sid")


def test_people_log_in_by_their_sids(wired: Wired) -> None:
    """The group of the directory decides about the VLAN."""
    for name, vlan, reason in (("ann", STAFF_VLAN, ""), ("bob", "", "no provider")):
        is_accepted, output, _ = wired.log_in(wired.sids[name])
        assert is_accepted, output
        assert _vlan(output) == vlan
        assert wired.event() == (name, reason, "AD CS", "sid")


def test_others_are_refused(wired: Wired) -> None:
    """A disabled account, an unknown SID, a certificate without a SID, and an account outside the prefix are refused,
    each with its reason."""
    known = wired.sids["ann"]
    assert [wired.log_in(sid)[::2] for sid in (wired.sids["off"], f"{known}9", "")] == [
        (False, "account disabled"),
        (False, "unknown user"),
        (False, "the client certificate has no strong name"),
    ]
    wired.service.ok("authority", "set", "AD CS", "--sid-prefix", "S-1-5-21-1-2-3")
    assert wired.log_in(known)[::2] == (False, "authority may not speak for this user")


def _vlan(output: str) -> str:
    """Return the VLAN in the Access-Accept that eapol_test prints, or an empty text."""
    found = re.search(r"Attribute 81 \(Tunnel-Private-Group-[Ii]d\) length=\d+\n\s+Value: ([0-9a-f]+)", output)
    return bytes.fromhex(found[1]).lstrip(b"\0").decode() if found else ""

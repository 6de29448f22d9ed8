"""Tests of OpenVPN with openvpn-auth-radius as the NAS, and of its client.

The plug-in cuts port numbers to four digits. Therefore the test runs in a network of its own, where the service has the
usual ports.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.authority import Authority
from tests.peers.freeradius import eventually
from tests.peers.hook import Hook
from tests.peers.namespace import Machine, may_unshare
from tests.peers.programs import find, needs
from tests.peers.second_factor import PASSWORD, event, provide
from tests.running_service import RunningService, running_service
from tests.torture.test_provider import metric

SECRET = "between-openvpn-and-service"
PLUGIN = Path("/usr/lib/openvpn/radiusplugin.so")
PORTS = {"SALLYPORT_RADIUS_AUTH_BIND": "127.0.0.1:1812", "SALLYPORT_RADIUS_ACCT_BIND": "127.0.0.1:1813"}
UP = "Initialization Sequence Completed"
LIMIT_S = 90
# The timeout is longer than the delay of a Reject; otherwise no Reject would arrive.
PLUGIN_CNF = """\
NAS-Identifier=OpenVpn
Service-Type=5
Framed-Protocol=1
NAS-Port-Type=5
NAS-IP-Address=127.0.0.1
OpenVPNConfig={directory}/server.conf
subnet=255.255.255.0
overwriteccfiles=true
server
{{
	acctport=1813
	authport=1812
	name=127.0.0.1
	retry=9
	wait=2
	sharedsecret={secret}
}}
"""
SERVER = """\
server 10.98.0.0 255.255.255.0
topology subnet
dev tun
proto udp
local 127.0.0.1
ca {directory}/authority.pem
cert {directory}/server.pem
key {directory}/server.pem
dh none
verify-client-cert none
username-as-common-name
tmp-dir {directory}
client-config-dir {directory}/clients
status {directory}/status 1
status-version 1
plugin {plugin} {directory}/plugin.cnf
"""
CLIENT = """\
client
dev tun
proto udp
remote 127.0.0.1
nobind
ca {directory}/authority.pem
ifconfig-noexec
route-noexec
explicit-exit-notify 1
connect-retry-max 1
"""

pytestmark = [
    pytest.mark.peer,
    needs("openvpn", "ip", "nsenter", "unshare"),
    pytest.mark.skipif(not PLUGIN.exists(), reason="openvpn-auth-radius is not installed"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="there is no /dev/net/tun"),
]


@dataclass(frozen=True)
class Vpn:
    """The running server, and the service that its plug-in asks."""

    machine: Machine
    service: RunningService

    @property
    def output(self) -> Path:
        """Return the log of the server and its plug-in."""
        return self.machine.directory / "output"

    @contextmanager
    def client(self, user: str, password: str) -> Iterator[str]:
        """Connect with the client until the block ends. Yield the output of the client up to its success or refusal."""
        directory = self.machine.directory
        credentials, output = directory / "credentials", directory / f"client-{user}"
        credentials.touch(mode=0o600)
        credentials.write_text(f"{user}\n{password}\n")
        command = [find("openvpn"), "--config", str(directory / "client.conf"), "--auth-user-pass", str(credentials)]
        with output.open("wb") as log:
            process = subprocess.Popen([*self.machine.wrapper, *command], stdout=log, stderr=log)
        try:
            eventually(lambda: UP in output.read_text() or process.poll() is not None, self.output, limit_s=LIMIT_S)
            yield output.read_text()
            process.terminate()
            process.wait(LIMIT_S)
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def vpn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vpn]:
    """Yield the running server and the service. The domain is in monitor mode."""
    directory = tmp_path_factory.mktemp("openvpn")
    authority = Authority("authority")
    (directory / "authority.pem").write_text(authority.pem)
    (directory / "server.pem").write_bytes(authority.key_for("vpn.example"))
    (directory / "clients").mkdir()
    for name, text in {"plugin.cnf": PLUGIN_CNF, "server.conf": SERVER, "client.conf": CLIENT}.items():
        (directory / name).write_text(text.format(directory=directory, secret=SECRET, plugin=PLUGIN))
    with (
        Machine(directory, {}, resolver="127.0.0.1") as machine,
        running_service(tmp_path_factory.mktemp("service"), PORTS, wrapper=machine.wrapper) as service,
    ):
        service.add_client("vpn", "127.0.0.1", SECRET)
        for user in ("ann", "bob", "pia"):
            service.add_user(user, PASSWORD)
        vpn = Vpn(machine, service)
        machine.start(vpn.output, find("openvpn"), "--config", str(directory / "server.conf"))
        eventually(lambda: UP in vpn.output.read_text(), vpn.output, limit_s=LIMIT_S)
        yield vpn


def sessions(service: RunningService, user: str, *, live: bool = False) -> list[dict[str, Any]]:
    """Return the sessions of a user, newest first.

    live: whether to return only live sessions.
    """
    found: list[dict[str, Any]] = service.sessions(userName=user, live=live or None)
    return found


def test_the_right_password_opens_a_tunnel(vpn: Vpn) -> None:
    """The client is connected, its gateway is recognized as OpenVPN, and its session is listed until the client
    disconnects."""
    with vpn.client("ann", PASSWORD) as output:
        assert UP in output
        eventually(lambda: len(sessions(vpn.service, "ann", live=True)) == 1, vpn.output)
    assert event(vpn.service, "ann")[1:] == ("accept", "no provider", "local")
    (device,) = vpn.service.devices()
    assert (device["device_type"], device["device_type_certainty"]) == ("OpenVPN", "probable")
    assert (device["nas_identifier"], device["nas_port_type"]) == ("OpenVpn", "Virtual")
    eventually(lambda: sessions(vpn.service, "ann", live=True) == [], vpn.output, limit_s=LIMIT_S)
    (session,) = sessions(vpn.service, "ann")
    assert (session["state"], session["framedIp"], session["station"]) == ("stopped", "10.98.0.2", "127.0.0.1")
    assert min(session["inputOctets"], session["outputOctets"]) > 0


def test_a_wrong_password_opens_no_tunnel(vpn: Vpn) -> None:
    """The client reports the refusal, and no accounting is sent for a session."""
    with vpn.client("bob", "not the password") as output:
        assert "AUTH_FAILED" in output
        assert UP not in output
    assert event(vpn.service, "bob")[1:3] == ("reject", "wrong password")
    assert sessions(vpn.service, "bob") == []


def test_retransmits_join_one_prompt(vpn: Vpn) -> None:
    """While the user has not yet approved, the plug-in sends the request again with the same identifier, a new
    authenticator and a new port. All requests join one prompt, and one Accept is sent to the newest port."""
    with vpn.machine.inside(), Hook() as hook:
        provide(vpn.service, "webhook", **hook.fields)
        vpn.service.set_mode("default", "enforce")
        hook.will("pia", "approved", after_s=5)
        with vpn.client("pia", PASSWORD) as output:
            assert UP in output
        assert hook.prompts_of("pia") == 1
        assert metric(vpn.service, "mfa_joined_retransmits_total", provider="webhook") >= 2
    assert vpn.service.rows("select count(*) from events where user_name = 'pia'") == [(1,)]
    assert event(vpn.service, "pia") == ("accept", "accept", "", "local+webhook")

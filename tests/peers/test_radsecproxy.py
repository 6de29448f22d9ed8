"""Tests of radsecproxy in front of the service. It uses UDP to the device, and RadSec to the service."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sallyport.certs.folder import CertificateFolder, present
from tests.certs.conftest import HOST, made
from tests.peers.programs import find, needs, radclient
from tests.ports import free_port
from tests.radsec_service import PROXY, SecureService, running_secure_service
from tests.running_service import running_service
from tests.waiting import eventually

__all__ = ["made"]

pytestmark = [pytest.mark.peer, needs("radsecproxy", "radclient")]

SECRET = "between radclient and radsecproxy"
RIGHT = ('User-Name = "ann"', 'User-Password = "hello"')
CONFIGURATION = """
ListenUDP 127.0.0.1:{udp}
LogLevel 2
tls ours {{
    CACertificateFile {ca}
    CertificateFile {certificate}
    CertificateKeyFile {key}
}}
client 127.0.0.1 {{
    type udp
    secret "{secret}"
}}
server localhost {{
    port {tls}
    type tls
    tls ours
    secret radsec
    certificateNameCheck on
    statusServer on
}}
realm * {{
    server localhost
    accountingServer localhost
}}
"""


class Proxy:
    """A running radsecproxy.

    ask: sends a packet through the proxy, and returns radclient's output.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
        self._port = port

    def ask(self, kind: str, *attributes: str, tries: int = 20) -> str:
        server = f"127.0.0.1:{self._port}"
        return radclient(self._directory, kind, server, SECRET, attributes, tries=tries, wait_s=2)


@contextmanager
def proxy(service: SecureService, directory: Path, *, lives: bool = True) -> Iterator[Proxy]:
    """Yield a radsecproxy with its certificate.

    lives: whether the proxy must still run at the end. Version 1.9.2 may crash if its connection is closed right after
    the handshake.
    """
    udp = free_port()
    certificates = CertificateFolder(service.data_dir)
    certificate = certificates.client(PROXY)
    configuration = directory / "radsecproxy.conf"
    configuration.write_text(
        CONFIGURATION.format(
            udp=udp, tls=service.radsec_port, ca=certificates.ca, certificate=certificate,
            key=certificate.with_suffix(".key"), secret=SECRET,
        )
    )  # fmt: skip
    with (directory / "radsecproxy.log").open("wb") as log:
        process = subprocess.Popen([find("radsecproxy"), "-f", "-c", configuration], stdout=log, stderr=log)
    try:
        yield Proxy(directory, udp)
        assert not lives or process.poll() is None, (directory / "radsecproxy.log").read_text()
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def service(made: Path, tmp_path: Path) -> Iterator[SecureService]:
    """Yield a service with RadSec. Its only RADIUS client is identified by a certificate."""
    directory = tmp_path / "service"
    directory.mkdir()
    with running_secure_service(directory, made) as service:
        yield service


def test_logins_and_accounting_through_a_proxy(service: SecureService, tmp_path: Path) -> None:
    """Accept, Reject and accounting work through the proxy. The device is the one behind the proxy."""
    with proxy(service, tmp_path) as front:
        device = ('NAS-Identifier = "switch-1"', "NAS-IP-Address = 192.0.2.77")
        assert "Received Access-Accept" in front.ask("auth", *RIGHT, *device)
        assert "Received Access-Reject" in front.ask("auth", 'User-Name = "ann"', 'User-Password = "wrong"')
        started = ('User-Name = "ann"', "Acct-Status-Type = Start", 'Acct-Session-Id = "s1"')
        assert "Received Accounting-Response" in front.ask("acct", *started)
    devices = service.devices()
    assert ("switch-1", "127.0.0.1", "192.0.2.77") in {
        (each["device_name"], each["ip_address"], each["client_ip"]) for each in devices
    }


def test_copies_through_a_proxy_are_recorded_and_not_answered(service: SecureService, tmp_path: Path) -> None:
    """A proxy that is marked as shadow passes copies of requests on over TLS. They are no logins."""
    service.ok("client", "set", "proxy", "--shadow", "yes")
    with proxy(service, tmp_path) as front:
        assert "No reply" in front.ask("auth", *RIGHT, tries=1)
        start = ('User-Name = "ann"', "Acct-Status-Type = Start", 'Acct-Session-Id = "s1"')
        assert "No reply" in front.ask("acct", *start, tries=1)
    wanted = [("ann", "copy", "accept", "copy from proxy")]
    eventually(lambda: service.rows("select user_name, kind, answer, place from shadow_logins") == wanted)
    assert not service.devices() and not service.rows("select 1 from events") and not service.sessions()


def test_a_proxy_comes_back_after_a_restart(service: SecureService, tmp_path: Path) -> None:
    """After a restart of the service the proxy connects again."""
    with proxy(service, tmp_path) as front:
        assert "Received Access-Accept" in front.ask("auth", *RIGHT)
        assert service.stop() == 0
        service.start()
        assert "Received Access-Accept" in front.ask("auth", *RIGHT, tries=60)


def test_a_proxy_with_a_revoked_certificate(service: SecureService, tmp_path: Path) -> None:
    """After a revocation the proxy gets no answer, without a restart of the service.

    `doctor` and the log show the refused proxy and the reason.
    """
    with proxy(service, tmp_path, lives=False) as front:
        assert "Received Access-Accept" in front.ask("auth", *RIGHT)
        CertificateFolder(service.data_dir).revoke(PROXY, present())
        deadline = time.monotonic() + 30
        while "radsec_closed" not in service.log():
            assert time.monotonic() < deadline, service.log()
            time.sleep(0.1)
        assert "No reply" in front.ask("auth", *RIGHT, tries=1)
    with proxy(service, tmp_path, lives=False) as front:
        assert "No reply" in front.ask("auth", *RIGHT, tries=2)
    assert [each["reason"] for each in service.call("listen.senders")] == ["handshake"]
    assert "revoked" in service.log()


BEHIND = """
ListenTLS 127.0.0.1:{tls}
LogLevel 2
tls ours {{
    CACertificateFile {ca}
    CertificateFile {certificate}
    CertificateKeyFile {key}
}}
client localhost {{
    type tls
    tls ours
    secret radsec
    certificateNameCheck off
}}
server 127.0.0.1 {{
    port {udp}
    type udp
    secret "{secret}"
    statusServer off
}}
realm * {{
    server 127.0.0.1
}}
"""


def test_a_proxy_behind_the_service(made: Path, tmp_path: Path) -> None:
    """One service sends its logins over TLS to radsecproxy, which sends them over UDP to another service.

    Accept and Reject are passed back, also after a restart of radsecproxy.
    """
    certificates = CertificateFolder(made)
    tls = free_port()
    (tmp_path / "home").mkdir()
    (tmp_path / "front").mkdir()
    with running_service(tmp_path / "home") as home, running_service(tmp_path / "front") as front:
        for service in (home, front):
            service.add_client("proxy", "127.0.0.1", SECRET)
        home.add_user("ann", b"hello")
        front.ok(
            "domain", "first-factor", "default", "radius", "--radius-server", f"127.0.0.1:{tls}", "--radius-tls",
            str(certificates.client(PROXY)), "--radius-tls-ca", str(certificates.ca), "--radius-tls-name", HOST,
        )  # fmt: skip
        configuration = tmp_path / "radsecproxy.conf"
        configuration.write_text(
            BEHIND.format(
                tls=tls, udp=home.ports.auth, ca=certificates.ca, certificate=certificates.server,
                key=certificates.server_key, secret=SECRET,
            )
        )  # fmt: skip
        server = f"127.0.0.1:{front.ports.auth}"
        for _ in range(2):
            with (tmp_path / "radsecproxy.log").open("ab") as log:
                process = subprocess.Popen([find("radsecproxy"), "-f", "-c", configuration], stdout=log, stderr=log)
            try:
                output = radclient(tmp_path, "auth", server, SECRET, RIGHT, tries=30, wait_s=2)
                assert "Received Access-Accept" in output, (tmp_path / "radsecproxy.log").read_text() + front.log()
                wrong = ('User-Name = "ann"', 'User-Password = "wrong"')
                output = radclient(tmp_path, "auth", server, SECRET, wrong, tries=5, wait_s=2)
                assert "Received Access-Reject" in output
            finally:
                process.terminate()
                process.wait(10)

"""eapol_test logs in with the file of a profile, and refuses another server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.eapol import KEYS, SUCCESS
from tests.peers.programs import find, needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET, PASSWORD = "between NAS and server", "correct horse"
SSID = 'Büro "1" \\&;'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with a certificate, the user ann, and a client certificate of ann."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as running:
        running.ok("cert", "init", "--host", "radius.example.com")
        running.ok("cert", "issue", "ann@default")
        running.add_client("nas", "127.0.0.1", SECRET)
        running.add_user("ann", PASSWORD)
        yield running


def saved(service: RunningService, directory: Path, method: str, *options: str) -> Path:
    """Return the file for wpa_supplicant of a profile with this method, with the password or the certificate of ann."""
    service.ok("profile", "set", "p", "--domain", "default", "--ssid", SSID, "--method", method, *options)
    wanted = ("--domain", "default", "--file", "p-wpa_supplicant.conf", "--user", "ann", "--to", str(directory))
    path = Path(service.ok("profile", "save", "p", *wanted).strip())
    own = service.data_dir / "certs" / "clients" / "ann@default.pem"
    text = path.read_text().replace('identity="ann"', f'identity="ann"\n\tpassword="{PASSWORD}"', 1)
    text = text.replace("/etc/ssl/certs/USERNAME.pem", str(own))
    path.write_text(text.replace("/etc/ssl/private/USERNAME.key", str(own.with_suffix(".key"))))
    return path


def eapol_test(service: RunningService, path: Path) -> str:
    """Log in with a configuration file, and return the output."""
    port = str(service.ports.auth)
    command = [find("eapol_test"), "-c", str(path), "-a", "127.0.0.1", "-p", port, "-s", SECRET, "-t", "20"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("method", ["tls", "peap", "ttls-pap", "ttls-mschapv2"])
def test_a_login_with_the_file(service: RunningService, tmp_path: Path, method: str) -> None:
    """The authority and the server name in the file fit the real server, and the login has the method of the profile.
    The outer identity hides the user and selects the domain.
    """
    output = eapol_test(service, saved(service, tmp_path, method))
    assert SUCCESS in output and KEYS in output, output
    user, used = service.rows("select user_name, method from events order by id desc limit 1")[0]
    assert user == "ann" and str(used).startswith(f"eap-{method}")
    if method != "tls":
        assert "anonymous@default" in output


@pytest.mark.parametrize("method", ["peap", "tls"])
def test_another_server_name_is_refused(service: RunningService, tmp_path: Path, method: str) -> None:
    """A device with the file does not send its password to a server with a certificate of another name."""
    path = saved(service, tmp_path, method, "--server-name", "other.example.com")
    output = eapol_test(service, path)
    assert SUCCESS not in output and "err='Domain mismatch'" in output, output
    service.ok("profile", "remove", "p", "--domain", "default")

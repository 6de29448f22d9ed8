"""Tests of pam_radius_auth as the device. pamtester runs it as in a login to a Linux machine.

PAM reads /etc/pam.d. The file of the test is there only in its own mount namespace, so that the machine does not
change.
"""

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.peers.programs import find, needs
from tests.ports import free_port
from tests.running_service import RunningService, running_service

SECRET = "a-secret-of-pam"
PAM_SERVICE = "sallyport-test"
PASSWORD = "correct horse battery staple, and then some more of it"
FOLDERS = ("/lib/security", "/usr/lib/security", "/lib/x86_64-linux-gnu/security", "/usr/lib/*/security")
IN_NAMESPACE = 'mount --bind "$1" /etc/pam.d && shift && exec "$@"'


def module() -> Path | None:
    """Return the path of pam_radius_auth.so."""
    found = (path for folder in FOLDERS for path in Path("/").glob(f"{folder[1:]}/pam_radius_auth.so"))
    return next(found, None)


@cache
def may_mount() -> bool:
    """Return whether a mount namespace can be made."""
    command = [find("unshare"), "--mount", "mount", "--bind", "/etc/pam.d", "/etc/pam.d"]
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False


pytestmark = [
    pytest.mark.peer,
    needs("pamtester"),
    pytest.mark.skipif(module() is None, reason="pam_radius_auth (libpam-radius-auth) is not installed"),
    pytest.mark.skipif(not may_mount(), reason="a mount namespace of its own is not permitted"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service whose accounting port is the authentication port plus one, as the module expects."""
    port = free_port(following=1)
    binds = {
        "SALLYPORT_RADIUS_AUTH_BIND": f"127.0.0.1:{port}",
        "SALLYPORT_RADIUS_ACCT_BIND": f"127.0.0.1:{port + 1}",
    }
    with running_service(tmp_path_factory.mktemp("service"), binds) as service:
        service.add_client("linux", "127.0.0.1", SECRET)
        service.add_user("bob", PASSWORD)
        yield service


@pytest.fixture
def pam(tmp_path: Path, service: RunningService) -> Path:
    """Return a directory that replaces /etc/pam.d."""
    return configure(tmp_path, service, SECRET)


def configure(directory: Path, service: RunningService, secret: str, *, wait_s: int = 5) -> Path:
    """Create a directory that replaces /etc/pam.d. Its logins are sent to the service."""
    folder, configuration = directory / "pam.d", directory / "servers.conf"
    folder.mkdir()
    module_with = f"required {module()} conf={configuration}"
    (folder / PAM_SERVICE).write_text(f"auth {module_with}\naccount {module_with}\nsession {module_with}\n")
    configuration.touch(mode=0o600)
    configuration.write_text(f"127.0.0.1:{service.ports.auth} {secret} {wait_s}\n")
    return folder


def pamtester(pam: Path, given: str, *operations: str, user: str = "bob") -> tuple[int, str]:
    """Log a user in through PAM. Return the exit status and the output."""
    inside = [find("unshare"), "--mount", "--propagation", "private", "sh", "-c", IN_NAMESPACE, "sh", str(pam)]
    done = subprocess.run(
        [*inside, find("pamtester"), PAM_SERVICE, user, *operations],
        input=given + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.returncode, done.stdout + done.stderr


def test_the_right_password_logs_in(pam: Path, service: RunningService) -> None:
    """PAM accepts bob. The machine is registered as a device with the product and the medium of its request."""
    status, output = pamtester(pam, PASSWORD, "authenticate")
    assert (status, "successfully authenticated" in output) == (0, True), output
    (device,) = service.devices()
    assert device["nas_identifier"] == PAM_SERVICE
    assert (device["device_type"], device["device_type_certainty"]) == ("pam_radius", "probable")
    assert device["nas_port_type"] == "Virtual"


def test_a_wrong_password_does_not_log_in(pam: Path, service: RunningService) -> None:
    """PAM refuses a wrong password, and the event has the reason."""
    status, output = pamtester(pam, "not the password", "authenticate")
    assert status != 0, output
    (last,) = service.rows("select user_name, applied_decision, reason from events order by id desc limit 1")
    assert last == ("bob", "reject", "wrong password")


def test_a_session_is_accounted_for(pam: Path, service: RunningService) -> None:
    """When PAM opens and closes a session, the store has the start and the stop of one session."""
    status, output = pamtester(pam, PASSWORD, "authenticate", "open_session", "close_session")
    assert status == 0, output
    kept = service.rows("select status_type, user_name, session_id from accounting_records order by id")
    assert [row[:2] for row in kept] == [(1, "bob"), (2, "bob")]
    assert kept[0][2] == kept[1][2] != b""

"""The webhook of the guide works as printed. It is a second factor like a push, in one file."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.ports import free_port
from tests.running_service import RunningService, running_service

EXAMPLE = Path(__file__).parents[2] / "docs" / "guides" / "webhook_example.py"
SECRET = "secret of the NAS"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with an enforcing domain that uses the example. The example knows the user alice but not the user
    bob.
    """
    directory = tmp_path_factory.mktemp("hook")
    secret = directory / "hook.secret"
    secret.write_text("of the hook\n")
    with running_service(directory, {"SALLYPORT_EGRESS": "default, 127.0.0.1/32"}, fresh=True) as running:
        hook, port = started(secret)
        try:
            running.add_client("nas", "127.0.0.1", SECRET)
            for user in ("alice", "bob"):
                running.add_user(user, "a long password")
            running.ok(
                "provider", "set", "default", "webhook", "--url", f"http://127.0.0.1:{port}/", "--secret", str(secret)
            )
            running.ok("domain", "mode", "default", "enforce")
            yield running
        finally:
            hook.kill()
            hook.wait()


def started(secret: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the example on a free port. Return its process and the port. If another program has taken the port
    meanwhile, the example ends, and another port is tried."""
    while True:
        port = free_port()
        hook = subprocess.Popen([sys.executable, str(EXAMPLE), str(port), str(secret), "--approve"])
        while not listens(port) and hook.poll() is None:
            time.sleep(0.01)
        try:
            hook.wait(0.5)
        except subprocess.TimeoutExpired:
            return hook, port


def listens(port: int) -> bool:
    """Return whether a server accepts connections on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_provider_check_reaches_the_example(service: RunningService) -> None:
    assert "the hook answers" in service.ok("provider", "check", "default")


def test_an_approved_login_is_accepted(service: RunningService) -> None:
    """The hook first answers `waiting`, and then it approves."""
    with service.radius(SECRET) as nas:
        assert nas.login("alice", "a long password") == ACCESS_ACCEPT
    assert service.rows("select reason, factor from events where user_name = 'alice'") == [("", "local+webhook")]


def test_a_user_that_the_hook_does_not_know_is_refused(service: RunningService) -> None:
    with service.radius(SECRET) as nas:
        assert nas.login("bob", "a long password") == ACCESS_REJECT


def test_an_answer_in_the_terminal_refuses_the_login(tmp_path: Path) -> None:
    """Without --approve, the answer `n` refuses the login. The terminal shows only the question."""
    port, secret = free_port(), tmp_path / "hook.secret"
    secret.write_text("of the hook\n")
    command = [sys.executable, str(EXAMPLE), str(port), str(secret)]
    terminal = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        running_service(tmp_path, {"SALLYPORT_EGRESS": "default, 127.0.0.1/32"}, fresh=True) as running,
        subprocess.Popen(command, text=True, **terminal) as hook,
    ):
        try:
            assert hook.stdin is not None
            hook.stdin.write("n\n")
            hook.stdin.flush()
            running.add_client("nas", "127.0.0.1", SECRET)
            running.add_user("alice", "a long password")
            while not listens(port):
                assert hook.poll() is None
            running.ok(
                "provider", "set", "default", "webhook", "--url", f"http://127.0.0.1:{port}/", "--secret", str(secret)
            )
            running.ok("domain", "mode", "default", "enforce")
            with running.radius(SECRET) as nas:
                assert nas.login("alice", "a long password") == ACCESS_REJECT
            assert running.rows("select reason from events") == [("second factor denied",)]
        finally:
            hook.kill()
        assert hook.stdout is not None
        assert hook.stdout.read().endswith(": approve? [y/n] ")

"""The webhooks of the guide work as printed. One is a second factor like a push, and one sends codes by SMS."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.ports import free_port
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service

EXAMPLE = Path(__file__).parents[2] / "docs" / "guides" / "webhook_example.py"
SMS = EXAMPLE.with_name("sms_hook_example.py")
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


def started(secret: Path, example: Path = EXAMPLE, more: str = "--approve") -> tuple["subprocess.Popen[bytes]", int]:
    """Start an example on a free port. Return its process and the port. If another program has taken the port
    meanwhile, the example ends, and another port is tried. more: its last argument."""
    while True:
        port = free_port()
        hook = subprocess.Popen([sys.executable, str(example), str(port), str(secret), more])
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


class Gateway(BaseHTTPRequestHandler):
    """An SMS gateway that keeps its messages."""

    messages: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        self.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""


def test_the_code_of_an_sms_is_accepted(tmp_path: Path) -> None:
    """The example sends one message for each login. A wrong code can be corrected, and a code admits one login."""
    secret, gateway = tmp_path / "hook.secret", ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    secret.write_text("of the hook\n")
    with gateway, running_service(tmp_path, {"SALLYPORT_EGRESS": "default, 127.0.0.1/32"}, fresh=True) as running:
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        hook, port = started(secret, SMS, f"http://127.0.0.1:{gateway.server_port}/")
        try:
            running.add_client("nas", "127.0.0.1", SECRET)
            running.add_user("alice", "a long password")
            url = f"http://127.0.0.1:{port}/"
            running.ok("provider", "set", "default", "webhook", "--url", url, "--secret", str(secret))
            running.ok("domain", "mode", "default", "enforce")
            with running.radius(SECRET) as nas:
                state = challenge(nas, "a long password")
                assert [each["to"] for each in Gateway.messages] == ["+49301234567"]
                code = Gateway.messages[0]["text"][:6]
                state = challenge(nas, f"{(int(code) + 1) % 10**6:06}", state)
                assert nas.login("alice", code, STATE=state) == ACCESS_ACCEPT
                later = challenge(nas, "a long password")
                assert len(Gateway.messages) == 2
                challenge(nas, code if code != Gateway.messages[1]["text"][:6] else "000000", later)
        finally:
            hook.kill()
            hook.wait()
            gateway.shutdown()


def challenge(nas: RadiusClient, password: str, state: bytes = b"") -> bytes:
    """Log in or answer a challenge, and return the State of the challenge that follows."""
    more = {"STATE": state} if state else {}
    code, attributes = nas.exchange(nas.packet("alice", password, **more))
    assert code == ACCESS_CHALLENGE
    return attributes[STATE]

"""The webhook of the guide works as it is printed: a push-like second factor in one file."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.docs.commands import free_port
from tests.service import RunningService, running_service

EXAMPLE = Path(__file__).parents[2] / "docs" / "guides" / "webhook_example.py"
SECRET = "secret of the NAS"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """An enforcing domain whose provider is the example; alice is known to it, bob is not."""
    directory, port = tmp_path_factory.mktemp("hook"), free_port()
    secret = directory / "hook.secret"
    secret.write_text("of the hook\n")
    with running_service(directory, {"SALLYPORT_EGRESS": "default, 127.0.0.1/32"}, fresh=True) as running:
        hook = subprocess.Popen([sys.executable, str(EXAMPLE), str(port), str(secret), "--approve"])
        try:
            running.add_client("nas", "127.0.0.1", SECRET)
            for user in ("alice", "bob"):
                running.add_user(user, "a long password")
            while not listens(port):
                assert hook.poll() is None
            running.ok(
                "provider", "set", "default", "webhook", "--url", f"http://127.0.0.1:{port}/", "--secret", str(secret)
            )
            running.ok("domain", "mode", "default", "enforce")
            yield running
        finally:
            hook.kill()
            hook.wait()


def listens(port: int) -> bool:
    """Whether a server accepts connections on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_check_of_the_provider_passes(service: RunningService) -> None:
    """`provider check` says that the hook answers."""
    assert "the hook answers" in service.ok("provider", "check", "default")


def test_an_approved_login_gets_in(service: RunningService) -> None:
    """The hook is asked, says `waiting` first, and approves."""
    with service.radius(SECRET) as nas:
        assert nas.login("alice", "a long password") == ACCESS_ACCEPT
    assert service.rows("select reason, factor from events where user_name = 'alice'") == [("", "local+webhook")]


def test_a_user_who_is_unknown_to_the_hook_is_refused(service: RunningService) -> None:
    """A user without a second factor does not get in."""
    with service.radius(SECRET) as nas:
        assert nas.login("bob", "a long password") == ACCESS_REJECT

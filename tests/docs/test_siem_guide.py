"""The settings and messages of docs/guides/siem.md are those of a running service."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.commands import ROOT
from tests.running_service import RunningService, running_service

PAGE = (ROOT / "docs" / "guides" / "siem.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^(<86>1 .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def siem() -> Iterator[socket.socket]:
    """Yield a socket that receives syslog over UDP."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(20)
        yield sock


def message_of_a_login(directory: Path, siem: socket.socket, query: str) -> str:
    """Return what the SIEM gets for a login of alice."""
    port = siem.getsockname()[1]
    settings = {
        "SALLYPORT_EVENT_OUTLETS": f"syslog+udp://127.0.0.1:{port}{query}",
        "SALLYPORT_AUDIT_OUTLETS": "false",
        "SALLYPORT_EGRESS": "default, 127.0.0.1/32",
    }
    with running_service(directory, settings) as service:
        log_in(service)
        return siem.recv(65_536).decode("utf-8")


def log_in(service: RunningService) -> None:
    """Send a login of alice, whose password is right."""
    secret = service.cli("client", "add", "vpn", "--address", "127.0.0.1", "--org", "1", "--tenant", "1").stdout.strip()
    service.cli("user", "add", "alice", "--domain", "default", "--password", "-", input="correct horse")
    address = f"127.0.0.1:{service.ports.auth}"
    done = service.cli(
        "check", "radius", address, "--secret", secret, "--user", "alice", "--password", "correct horse"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_syslog_has_the_fields_as_structured_data(tmp_path: Path, siem: socket.socket) -> None:
    """The message has the names and the sentence that the page shows."""
    message = message_of_a_login(tmp_path, siem, "")
    shown = set(re.findall(r' (\w+)="', MESSAGES[0]))
    assert shown <= set(re.findall(r' (\w+)="', message))
    assert re.search(r"\] \ufeffaccept alice at \S+: no provider$", message)


def test_syslog_has_the_json_object(tmp_path: Path, siem: socket.socket) -> None:
    """With format=json, the text of the message is the JSON object with the names that the page shows."""
    message = message_of_a_login(tmp_path, siem, "?format=json")
    text = message.partition(" - ")[2]
    shown = re.findall(r'"(\w+)": ', MESSAGES[1])
    assert list(json.loads(text))[: len(shown)] == shown

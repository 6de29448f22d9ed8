"""The README's first walk, word for word: what a new admin types works as it is printed."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sallyport.vendors import PRODUCTS
from tests.service import PROGRAM

WALK = "## The first real NAS"
LISTENS = {
    "SALLYPORT_HTTP_BIND": "127.0.0.1:{0}",
    "SALLYPORT_RADIUS_AUTH_BIND": "127.0.0.1:{1}",
    "SALLYPORT_RADIUS_ACCT_BIND": "127.0.0.1:{2}",
}
READY_S = 60
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text under a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    found = re.search(rf"^{re.escape(title)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the README has no section {title!r}"
    return found[1]


def lines() -> list[str]:
    """The commands of the walk, in order: what stands indented under a step."""
    return [line.strip() for line in section(WALK).splitlines() if line.startswith("       ") and line.strip()]


@dataclass(frozen=True)
class Walk:
    """What the whole walk printed, and how it ended."""

    status: int
    printed: str
    directory: Path


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """All commands in one shell, in an empty directory, on ports that are free: the usual ones are put back into what
    is compared. Between the first and the second the service becomes ready."""
    directory = tmp_path_factory.mktemp("walk")
    (directory / ".venv" / "bin").mkdir(parents=True)
    (directory / ".venv" / "bin" / "sallyport").symlink_to(PROGRAM)
    ports = [free_port() for _ in range(3)]
    script = (
        "\n".join(lines())
        .replace("127.0.0.1:8080", f"127.0.0.1:{ports[0]}")
        .replace("127.0.0.1:1812", f"127.0.0.1:{ports[1]}")
    )
    begin, rest = script.split("\n", 1)
    wait = f"for i in $(seq {READY_S * 10}); do [ -S sallyport-data/control.sock ] && break; sleep 0.1; done"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SALLYPORT_")}
    environ |= {name: text.format(*ports) for name, text in LISTENS.items()} | {"SALLYPORT_LOG_FORMAT": "json"}
    whole = f"set -e\n{begin.removesuffix('&')} > log 2>&1 &\necho $! > pid\n{wait}\n{rest}\n"
    try:
        done = subprocess.run(
            ["bash", "-c", whole], cwd=directory, env=environ, capture_output=True, text=True, timeout=120, check=False
        )
        yield Walk(done.returncode, done.stdout + done.stderr, directory)
    finally:
        os.kill(int((directory / "pid").read_text()), signal.SIGTERM)


def free_port() -> int:
    """Return a port that is free over TCP, and very likely over UDP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_walk_has_its_steps() -> None:
    """Service, clients, user, a login, its records and the API work as written."""
    commands = " ".join(lines())
    for part in ("serve &", "client add vpn", "client add here", "user add alice", "check radius", "event list",
                 "device list", "client unknown", "doctor", "curl"):  # fmt: skip
        assert part in commands


def test_every_command_works(walked: Walk) -> None:
    """The shell, which stops at the first that fails, comes to the end."""
    assert walked.status == 0, walked.printed


def test_it_shows_what_it_promises(walked: Walk) -> None:
    """An Accept, the event, the device in the command line's list and in the API's, and two secrets on disk."""
    assert "Access-Accept from 127.0.0.1" in walked.printed
    assert "alice" in walked.printed
    assert '"totalCount":1' in walked.printed.replace(" ", "")
    assert len((walked.directory / "vpn.secret").read_text().strip()) >= 16
    assert "problem" not in walked.printed


def test_every_product_has_a_line() -> None:
    """Each product that another one can be pointed from is in the table; what nobody has confirmed is marked."""
    text = section("## Pointing your RADIUS senders at it")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 16
    assert all(len(re.split(r"(?<!\\)\|", row)) == 6 for row in rows)
    assert "(?)" in text
    for name in ("Microsoft NPS", "Cisco ISE", "Aruba ClearPass", "Cisco ASA", "MikroTik RouterOS", "pam_radius"):
        assert name in PRODUCTS
        assert any(row.startswith(f"| {name}") for row in rows), name

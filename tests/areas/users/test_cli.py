"""Tests of `sallyport user totp`: it shows the QR code and asks for the first code, at a terminal and in scripts."""

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pyotp
import pytest

from tests.cli import Service, add_domain, add_user
from tests.running_service import PROGRAM

ARGS = ("--domain", "people")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service that has the domain `people`."""
    running = Service(tmp_path_factory.mktemp("service"))
    running.start()
    try:
        add_domain(running, "people")
        yield running
        running.stop()
    finally:
        running.kill()


def has_totp(service: Service, name: str) -> bool:
    """Return whether the list of users shows a seed. The table and the `--json` output must agree."""
    rows = json.loads(service.ok("user", "list", *ARGS, "--json"))
    has_totp = next(row["hasTotp"] for row in rows if row["userName"] == name)
    line = next(line for line in service.ok("user", "list", *ARGS).splitlines() if re.search(rf"\b{name}\b", line))
    assert ("yes" in line.split()) is has_totp
    return bool(has_totp)


def test_in_a_script(service: Service) -> None:
    """`--json` prints the enrolment without a prompt, `--code` confirms it, and `--remove` removes the seed.

    A second removal is no error.
    """
    add_user(service, "people", "ann")
    made = json.loads(service.ok("user", "totp", "ann", *ARGS, "--json"))
    assert set(made) == {
        "code",
        "status",
        "message",
        "userId",
        "otpauth",
        "seed",
        "qrCode",
        "link",
        "expiresAt",
        "warnings",
    }
    assert httpx.get(made["link"], trust_env=False).status_code == 200
    assert not has_totp(service, "ann")
    refused = service.cli("user", "totp", "ann", *ARGS, "--code", "12x456")
    assert (refused.returncode, refused.stderr) == (1, "sallyport: --code: the code must have six digits\n")
    assert service.cli("user", "totp", "ann", *ARGS, "--code", pyotp.TOTP(made["seed"]).now()).returncode == 0
    assert has_totp(service, "ann")
    assert service.cli("user", "totp", "ann", *ARGS, "--code", "123456").returncode == 1
    assert "not have" not in service.ok("user", "totp", "Ann", *ARGS, "--remove")
    assert not has_totp(service, "ann")
    again = service.cli("user", "totp", "ann", *ARGS, "--remove")
    assert (again.returncode, again.stderr) == (0, "user ann had no one-time-password seed\n")


def test_without_a_terminal(service: Service) -> None:
    """Without a terminal, the QR code, the URI and the link go to standard output and everything else goes to standard
    error. There is no prompt."""
    add_user(service, "people", "bob")
    done = service.program("user", "totp", "bob", *ARGS, input=b"000000\n")
    *blocks, uri, link = done.stdout.splitlines()
    assert done.returncode == 0
    assert set("".join(blocks)) <= set(" \u2580\u2584\u2588") and len(blocks) > 15
    assert len({len(line) for line in blocks}) == 1
    assert uri.startswith("otpauth://totp/people:bob?secret=")
    assert "/enrol/" in link and "first correct code" in done.stderr
    assert httpx.post(link, data={"code": pyotp.parse_uri(uri).now()}, trust_env=False).status_code == 200
    assert has_totp(service, "bob")


def test_five_wrong_codes(service: Service) -> None:
    """Each wrong code exits with status 1 and shows the number of remaining attempts. After five wrong codes the
    enrolment is deleted."""
    add_user(service, "people", "cat")
    seed = json.loads(service.ok("user", "totp", "cat", *ARGS, "--json"))["seed"]
    near = {pyotp.TOTP(seed).at(int(time.time()) + 30 * steps) for steps in range(-3, 6)}
    wrong = next(f"{number:06}" for number in range(20) if f"{number:06}" not in near)
    done = [service.cli("user", "totp", "cat", *ARGS, "--code", wrong) for _ in range(6)]
    assert {each.returncode for each in done} == {1}
    assert "tries left: 4" in done[0].stderr
    assert "has ended" in done[4].stderr
    assert "no enrolment of this user is pending" in done[5].stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("nobody", "--domain", "people"), 1),
        (("ann", "--domain", "nowhere"), 1),
        (("ann",), 2),
        (("ann", "--domain", "people", "--remove", "--json"), 2),
        (("ann", "--domain", "people", "--remove", "--code", "123456"), 2),
    ],
)
def test_refusals(service: Service, arguments: tuple[str, ...], status: int) -> None:
    """An unknown user, an unknown domain and contradictory options are refused, and nothing is written to standard
    output."""
    refused = service.cli("user", "totp", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")


def test_at_a_terminal(service: Service) -> None:
    """The command shows the QR code on a terminal, and asks for the first code until it is right."""
    add_user(service, "people", "dan")
    terminal = Terminal(service, "user", "totp", "dan", *ARGS)
    try:
        shown = terminal.until("First code: ")
        seed = re.findall(r"secret=(\w+)", shown)[0]
        assert "\u2588" in shown
        terminal.type("12")
        assert "six digits" in terminal.until("First code: ")
        right = pyotp.TOTP(seed).now()
        terminal.type(f"{(int(right) + 500_000) % 1_000_000:06}")
        assert "tries left: 4" in terminal.until("First code: ")
        terminal.type(f"{right[:3]} {right[3:]}")
        assert "has a one-time-password seed" in terminal.until("seed")
        assert terminal.process.wait(10) == 0
    finally:
        terminal.close()
    assert has_totp(service, "dan")


def test_without_a_service(tmp_path: Path) -> None:
    """If no service is running, the command opens the store.

    The link begins with the address of the configured HTTP listener.
    """
    stopped = Service(tmp_path, {"SALLYPORT_HTTP_BIND": "0.0.0.0:8443"})
    add = ("user", "add", "early", "--domain", "default", "--password", "-")
    stopped.ok("db", "migrate")
    stopped.ok(*add, input="hello")
    made = json.loads(stopped.ok("user", "totp", "early", "--domain", "default", "--json"))
    assert re.fullmatch(r"http://[^/:]+:8443/enrol/[\w-]{43}", made["link"])


class Terminal:
    """A command that runs on its own terminal."""

    def __init__(self, service: Service, *args: str) -> None:
        self.master, self.slave = os.openpty()
        name = os.ttyname(self.slave)
        command = ["sh", "-c", f'exec "$@" <{name} >{name} 2>&1', "sh", str(PROGRAM), *args]
        environ = {**service.environ, "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(command, env=environ, cwd=service.directory, start_new_session=True)

    def until(self, text: str) -> str:
        """Return the output up to the end of a text."""
        shown, deadline = b"", time.monotonic() + 20
        while text.encode() not in shown:
            assert time.monotonic() < deadline, shown.decode()
            if select.select([self.master], [], [], 0.05)[0]:
                with suppress(OSError):
                    shown += os.read(self.master, 4096)
        return shown.decode(errors="replace")

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self.master, f"{text}\n".encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


def test_a_link_to_this_machine_warns(service: Service) -> None:
    """With HTTP on a loopback address and without public_url, the command says that users cannot open the link."""
    add_user(service, "people", "link")
    shown = service.cli("user", "totp", "link", *ARGS)
    assert "warning: the link works only on this machine" in shown.stderr
    assert "set public_url" in shown.stderr

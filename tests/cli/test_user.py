"""`sallyport user`: passwords are octets from standard input, and a change applies to the next login."""

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import PROGRAM, RunningService


@pytest.fixture(scope="module")
def gate(service: Service) -> Iterator[RadiusClient]:
    """Yield a RADIUS client of the domain `people`."""
    add_domain(service, "people")
    add_client(service, "gate", "127.7.0.1", "people")
    with RadiusClient(service.ports.auth, SECRET, source="127.7.0.1") as client:
        yield client


@pytest.mark.parametrize(
    ("name", "given", "password"),
    [
        ("plain", b"hello\n", b"hello"),
        ("bare", b"hello", b"hello"),
        ("windows", b"hello\r\nsecond line\n", b"hello"),
        ("latin", b"gr\xfcn\xa0\n", b"gr\xfcn\xa0"),
        ("spaces", b"  two  \n", b"  two  "),
    ],
)
def test_a_password_is_the_octets_of_the_first_line(
    service: Service, gate: RadiusClient, name: str, given: bytes, password: bytes
) -> None:
    """The octets of the first line are not decoded, stripped or extended. The user can log in at once, and only with
    this password.
    """
    added = service.program("user", "add", name, "--domain", "people", "--password", "-", input=given)
    assert (added.returncode, added.stdout) == (0, "")
    assert gate.login(name, password) == ACCESS_ACCEPT
    assert gate.login(name, password + b"x") == ACCESS_REJECT


def test_a_removed_user_is_rejected_at_the_next_login(service: Service, gate: RadiusClient) -> None:
    add_user(service, "people", "leaver")
    assert gate.login("leaver", "hello") == ACCESS_ACCEPT
    removed = service.cli("user", "remove", "Leaver", "--domain", "people")
    assert (removed.returncode, removed.stdout) == (0, "")
    assert gate.login("leaver", "hello") == ACCESS_REJECT
    assert service.cli("user", "remove", "leaver", "--domain", "people").returncode == 1


def test_a_changed_password_applies_at_once(service: Service, gate: RadiusClient) -> None:
    """After a change the former password is rejected. A new password is refused if it is empty, is too long for RADIUS,
    or violates a policy of the user's instances.
    """
    organization = ("--org", "1", "--tenant", "1")
    policy = service.ok("policy", "add", "long", *organization, "--min-length", "9")
    machine = service.ok("instance", "add", "desk", "--domain", "people")
    service.ok("policy", "assign", policy, machine, *organization)
    service.ok("group", "add", "desks", "--domain", "people")
    add_user(service, "people", "changer")
    service.ok("group", "assign", "desks", "--domain", "people", "--user", "changer", "--instance", "desk")

    def given(octets: bytes) -> tuple[int, str]:
        done = service.program("user", "password", "Changer", "--domain", "people", "--password", "-", input=octets)
        return done.returncode, done.stderr

    assert gate.login("changer", "hello") == ACCESS_ACCEPT
    assert given(b"long gr\xfcn\n") == (0, "user Changer has a new password\n")
    assert (gate.login("changer", "hello"), gate.login("changer", b"long gr\xfcn")) == (ACCESS_REJECT, ACCESS_ACCEPT)
    for octets, message in ((b"hunter2\n", "minLen"), (b"x" * 129, "128 octets"), (b"\n", "empty")):
        status, error = given(octets)
        assert status in (1, 2) and message in error and "hunter2" not in error
    assert gate.login("changer", b"long gr\xfcn") == ACCESS_ACCEPT
    found = json.loads(service.ok("user", "list", "--domain", "people", "--search", "HANGE", "--json"))
    assert [row["userName"] for row in found] == ["changer"]


def test_list_shows_names_and_no_passwords(service: Service, gate: RadiusClient) -> None:
    """The list of a domain has its users. No password is in the list or in the log."""
    service.ok("user", "add", "listed", "--domain", "people", "--password", "-", input="my-own-words")
    table, text = (
        service.ok("user", "list", "--domain", "people"),
        service.ok("user", "list", "--domain", "people", "--json"),
    )
    assert "listed" in {row["userName"] for row in json.loads(text)}
    assert "listed" in table
    assert json.loads(service.ok("user", "list", "--domain", "default", "--json")) == []
    for output in (table, text, service.log()):
        assert "my-own-words" not in output
        assert b"my-own-words".hex() not in output


@pytest.mark.parametrize(
    ("arguments", "given", "status"),
    [
        (("Taken", "--domain", "people", "--password", "-"), b"again", 1),
        (("lost", "--domain", "nowhere", "--password", "-"), b"hello", 1),
        (("long", "--domain", "people", "--password", "-"), b"x" * 129, 1),
        (("empty", "--domain", "people", "--password", "-"), b"\n", 2),
        (("shown", "--domain", "people", "--password", "hunter2"), b"", 2),
        (("silent", "--domain", "people"), b"hello", 2),
        (("nowhere", "--password", "-"), b"hello", 2),
    ],
)
def test_invalid_users_are_refused_without_printing_the_password(
    service: Service, gate: RadiusClient, arguments: tuple[str, ...], given: bytes, status: int
) -> None:
    """A taken name, an unknown domain and an invalid password are refused."""
    if not any(row["userName"] == "taken" for row in service.users("people")):
        add_user(service, "people", "taken")
    refused = service.cli("user", "add", *arguments, input=given)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert "hunter2" not in refused.stderr
    assert not given.strip() or given.decode() not in refused.stderr


def test_a_terminal_is_asked_for_the_password_without_echo(service: Service, gate: RadiusClient) -> None:
    """On a terminal the password is asked for twice, without echo."""
    shown = typed_at_a_terminal(service, "secret-words\n", "user", "add", "typist", "--domain", "people")
    assert b"secret-words" not in shown
    assert gate.login("typist", "secret-words") == ACCESS_ACCEPT


def typed_at_a_terminal(service: RunningService, answer: str, *args: str) -> bytes:
    """Run a command on a terminal of its own, answer each prompt, and return the output of the terminal."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    command = ["sh", "-c", f'exec "$@" <{name} >{name} 2>&1', "sh", str(PROGRAM), *args]
    process = subprocess.Popen(command, env=service.environ, cwd=service.directory, start_new_session=True)
    shown, prompts, deadline = b"", 0, time.monotonic() + 20
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([master], [], [], 0.05)[0]:
                shown += os.read(master, 4096)
            if shown.count(b": ") > prompts:
                prompts += 1
                time.sleep(0.1)  # the prompt is printed a moment before the echo is switched off
                os.write(master, answer.encode())
        assert process.wait(5) == 0, shown
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
    return shown


def test_a_user_is_added_without_a_service(stopped: RunningService) -> None:
    stopped.ok("db", "migrate")
    stopped.ok("user", "add", "early", "--domain", "default", "--password", "-", input="hello")
    assert [row["userName"] for row in json.loads(stopped.ok("user", "list", "--domain", "default", "--json"))] == [
        "early"
    ]

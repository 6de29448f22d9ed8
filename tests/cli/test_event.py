"""`sallyport event`: the login log as a list and as a file, with and without a running service."""

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest

from sallyport.areas.events.cli import ALL_COLUMNS
from sallyport.base.clock import SECOND, now_us
from sallyport.cli.main import root
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import PROGRAM, RunningService

FORMULA = "=cmd|'/c calc'!A1"
HOSTILE = "\x1b]0;owned\x07\x9b31mred\n\u202enet"
RED = (b"\x1b", b"\x07", "\x9b".encode(), "\u202e".encode())
EVENT = (
    "insert into events (at, domain_id, user_name, ip_address, client_ip, device_id, device_name, station, method, "
    "factor, decision, applied_decision, would_have_been, reason, latency_us) values (?, 1, ?, '192.0.2.1', "
    "'10.0.0.1', 1, ?, '', 'pap', 'local', 'accept', 'accept', '', '', 1500)"
)


@pytest.fixture(scope="module")
def domain(service: Service) -> Iterator[str]:
    """Yield a domain with three logins: an accepted one, one whose user name is a formula, and one from a hostile
    device.
    """
    made = add_domain(service, "gate")
    add_client(service, "door", "127.9.0.1", "gate")
    add_user(service, "gate", "ann")
    with RadiusClient(service.ports.auth, SECRET, source="127.9.0.1") as client:
        assert client.login("ann", "hello", NAS_IDENTIFIER=b"fw1") == ACCESS_ACCEPT
        assert client.login(FORMULA, "hello", NAS_IDENTIFIER=b"fw1") == ACCESS_REJECT
        assert client.login("ann", "wrong", NAS_IDENTIFIER=HOSTILE.encode()) == ACCESS_REJECT
    yield made


def listed(service: RunningService, *options: str) -> list[dict[str, object]]:
    """Return the events of a list."""
    rows: list[dict[str, object]] = json.loads(service.ok("event", "list", "--json", *options))
    return rows


def test_events_are_chosen_by_user_device_and_reason(service: Service, domain: str) -> None:
    """Each option selects by a whole value, and several options together."""
    everyone = listed(service, "--domain", domain)
    assert {row["user"] for row in listed(service, "--domain", domain, "--user", "ANN")} == {"ann"}
    assert {row["device_name"] for row in listed(service, "--domain", domain, "--device", "fw1")} == {"fw1"}
    (wrong,) = listed(service, "--domain", domain, "--user", "ann", "--reason", "wrong password")
    assert wrong["appliedDecision"] == "reject"
    assert len(everyone) == 3
    empty = service.cli("event", "list", "--domain", domain, "--reason", "wrong")
    assert empty.stderr.startswith("no event matches: --user, --device, --reason and --trace-id need the whole value")
    assert service.cli("event", "list", "--domain", domain, "--reason", "wrong password").stderr == ""


def test_columns_of_a_list_are_chosen(service: Service, domain: str) -> None:
    """--columns selects columns of the table, also those that it usually does not show, and fields of the JSON."""
    head, _, *lines = service.ok("event", "list", "--domain", domain, "--columns", "user,method").splitlines()
    assert (head.split(), lines[-1].split()) == (["user", "method"], ["ann", "pap"])
    rows = listed(service, "--domain", domain, "--columns", "eventId, applied decision")
    assert {tuple(row) for row in rows} == {("eventId", "appliedDecision")}
    refused = service.cli("event", "list", "--domain", domain, "--columns", "usr")
    assert (refused.returncode, 'no column "usr"; columns: eventId, time, user' in refused.stderr) == (2, True)


def test_every_list_takes_columns() -> None:
    """Each command with the name `list` has --columns."""

    def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
        for name in group.list_commands(click.Context(group)):
            found = group.get_command(click.Context(group), name)
            if isinstance(found, click.Group):
                yield from commands(found, f"{path} {name}")
            elif found is not None:
                yield f"{path} {name}", found

    lists = {path: each for path, each in commands(root, "") if path.endswith(" list")}
    assert len(lists) > 15
    assert [path for path, each in lists.items() if not any("--columns" in one.opts for one in each.params)] == []


def write(service: RunningService, count: int, days: int) -> None:
    """Store `count` events of the users u0, u1 ... in a stopped service. They are one second apart and `days` days
    old.
    """
    service.ok("db", "migrate")
    first = now_us() - days * 86_400 * SECOND
    with closing(sqlite3.connect(service.data_dir / "sallyport.db")) as connection, connection:
        rows = [(first + number * SECOND, f"u{number}", "fw") for number in range(count)]
        connection.executemany(EVENT, rows)


def test_the_list_is_newest_first(service: Service, domain: str) -> None:
    """JSON has the field names of GetAuthLog, and the newest event is first. The domain is given by its name or its
    ID.
    """
    rows = listed(service, "--domain", "gate")
    assert [row["user"] for row in rows] == ["ann", FORMULA, "ann"]
    assert rows[0] | {"domain": "gate", "decision": "reject", "reason": "wrong password", "method": "pap"} == rows[0]
    assert listed(service, "--domain", domain) == rows
    assert "wrong password" in service.ok("event", "list", "--domain", "gate")


def test_the_list_is_filtered(service: Service, domain: str) -> None:
    """The list is filtered by search text, time and number of events."""
    newest, middle, oldest = listed(service, "--domain", "gate")
    assert listed(service, "--domain", "gate", "--search", "CMD") == [middle]
    assert listed(service, "--domain", "gate", "--limit", "2") == [newest, middle]
    assert listed(service, "--domain", "gate", "--from", str(middle["time"])) == [newest, middle]
    assert listed(service, "--domain", "gate", "--to", str(middle["time"])) == [oldest]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--domain", "nowhere"), 1), (("--domain", "gate", "--from", "yesterdy"), 2),
        (("--domain", "gate", "--to", "2026-13-01"), 2), ((), 2),
    ],
)  # fmt: skip
def test_invalid_options_are_refused(service: Service, domain: str, options: tuple[str, ...], status: int) -> None:
    """The exit status is 1 for an unknown domain, and 2 for a missing domain or a malformed time."""
    for command in ("list", "export"):
        done = service.cli("event", command, *options)
        assert (done.returncode, done.stdout) == (status, "")
    assert service.cli("event", "list", "--domain", "gate", "--limit", "0").returncode == 2


def test_csv_has_no_formulas(service: Service, domain: str) -> None:
    """CSV has a header line and a line for each event, with the oldest event first. No cell starts like a formula."""
    rows = list(csv.DictReader(io.StringIO(service.ok("event", "export", "--domain", "gate"))))
    assert tuple(rows[0]) == ALL_COLUMNS
    assert [row["user"] for row in rows] == ["ann", f"'{FORMULA}", "ann"]
    assert rows[0]["latencyMs"].replace(".", "").isdecimal()
    assert not any(sign in json.dumps(row, ensure_ascii=False).encode() for row in rows for sign in RED)


def test_json_lines_have_the_values_as_sent(service: Service, domain: str) -> None:
    """Each line is an object like in the list. Control characters are escaped."""
    text = service.ok("event", "export", "--domain", "gate", "--format", "jsonl")
    rows = [json.loads(line) for line in text.split("\n")]
    assert rows == list(reversed(listed(service, "--domain", "gate")))
    assert rows[2]["device_name"] == HOSTILE
    assert not any(sign in text.encode() for sign in RED)


def test_an_empty_csv_export_has_its_header(service: Service, domain: str) -> None:
    """If no event matches, CSV output is only the header line, and JSON lines output is empty."""
    assert service.ok("event", "export", "--domain", "gate", "--to", "2001-01-01").strip() == ",".join(ALL_COLUMNS)
    assert service.ok("event", "export", "--domain", "gate", "--to", "2001-01-01", "--format", "jsonl") == ""


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_exported_file_equals_standard_output(service: Service, domain: str, tmp_path: Path, form: str) -> None:
    """The file has mode 0600 and replaces an older one. Standard output stays empty."""
    file = tmp_path / "events"
    file.write_text("old")
    asked = ("event", "export", "--domain", "gate", "--format", form)
    assert service.cli(*asked, "--output", str(file)).stdout == ""
    assert file.read_bytes().decode() == service.program(*asked, "--output", "-").stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_failed_export_keeps_the_file(service: Service, domain: str, tmp_path: Path) -> None:
    """A failed export keeps the existing file and leaves no temporary file."""
    file = tmp_path / "events"
    file.write_text("old")
    assert service.cli("event", "export", "--domain", "nowhere", "--output", str(file)).returncode == 1
    assert [(each, each.read_text()) for each in tmp_path.iterdir()] == [(file, "old")]
    refused = service.cli("event", "export", "--domain", "gate", "--output", str(tmp_path / "none" / "events"))
    assert (refused.returncode, "No such file" in refused.stderr) == (1, True)


def test_an_export_follows_links_and_writes_to_pipes(service: Service, domain: str, tmp_path: Path) -> None:
    """An export replaces only an ordinary file. It follows a link, and it writes to a pipe."""
    link, target, pipe = tmp_path / "link", tmp_path / "target", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    service.ok("event", "export", "--domain", "gate", "--output", str(link))
    assert link.is_symlink()
    assert target.read_text().startswith("eventId,")
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        service.ok("event", "export", "--domain", "gate", "--output", str(pipe))
        assert reader.stdout is not None
        assert reader.stdout.read() == target.read_bytes()
    assert pipe.is_fifo()


def test_an_export_of_several_pages_is_complete(stopped: RunningService) -> None:
    """The export has every event once and in order, with and without a running service."""
    write(stopped, 1234, days=1)
    users = [f"u{number}" for number in range(1234)]
    asked = ("event", "export", "--domain", "default", "--format", "jsonl")
    alone = stopped.ok(*asked)
    assert [json.loads(line)["user"] for line in alone.splitlines()] == users
    newest = [row["user"] for row in listed(stopped, "--domain", "default", "--limit", "1100")]
    assert newest == users[:-1101:-1]
    assert len(listed(stopped, "--domain", "default")) == 100
    stopped.start()
    assert stopped.ok(*asked) == alone


def test_expired_events_are_deleted_after_the_start(stopped: RunningService) -> None:
    """After its start, the service deletes events that are older than event_days."""
    write(stopped, 3, days=91)
    assert len(stopped.rows("select id from events")) == 3
    stopped.start()
    deadline = time.monotonic() + 10
    while stopped.rows("select id from events"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_list_follows_new_events(service: Service, form: tuple[str, ...]) -> None:
    """--follow prints the last event, and a new one when it is stored, each once. It does not print the events before
    the last one. Ctrl-C ends it."""
    domain, source = ("json", "127.9.0.8") if form else ("table", "127.9.0.9")
    add_domain(service, domain)
    add_client(service, domain, source, domain)
    add_user(service, domain, "ann")

    def log_in(device: bytes) -> None:
        with RadiusClient(service.ports.auth, SECRET, source=source) as client:
            assert client.login("ann", "hello", NAS_IDENTIFIER=device) == ACCESS_ACCEPT

    log_in(b"fw-older")
    log_in(b"fw-last")
    command = [PROGRAM, "event", "list", "--domain", domain, "--user", "ann", "--follow", "--limit", "1", *form]
    with subprocess.Popen(command, env=service.environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        head = [] if form else [process.stdout.readline(), process.stdout.readline()]
        first = process.stdout.readline()
        log_in(b"fw-new")
        second = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(20) == 0
    assert ("fw-last" in first, "fw-new" in second, "fw-" in rest) == (True, True, False)
    assert not form or json.loads(second)["device_name"] == "fw-new"
    assert len(head) == (0 if form else 2)

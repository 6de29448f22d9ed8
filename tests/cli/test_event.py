"""`sallyport event`: the log of logins as a list and as a file, with a running service and without."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sallyport.base.clock import SECOND, now_us
from sallyport.events.cli import ALL_COLUMNS
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.service import RunningService

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
    """A domain with three logins: a good one, a wrong one of a user called like a formula, a hostile device's."""
    made = add_domain(service, "gate")
    add_client(service, "door", "127.9.0.1", "gate")
    add_user(service, "gate", "ann")
    with RadiusClient(service.ports.auth, SECRET, source="127.9.0.1") as client:
        assert client.login("ann", "hello", NAS_IDENTIFIER=b"fw1") == ACCESS_ACCEPT
        assert client.login(FORMULA, "hello", NAS_IDENTIFIER=b"fw1") == ACCESS_REJECT
        assert client.login("ann", "wrong", NAS_IDENTIFIER=HOSTILE.encode()) == ACCESS_REJECT
    yield made


def listed(service: RunningService, *options: str) -> list[dict[str, object]]:
    """The events of a list."""
    rows: list[dict[str, object]] = json.loads(service.ok("event", "list", "--json", *options))
    return rows


def write(service: RunningService, count: int, days: int) -> None:
    """Put events into the store of a service that does not run: u0, u1 ..., a second apart, so many days old."""
    service.ok("db", "migrate")
    first = now_us() - days * 86_400 * SECOND
    with closing(sqlite3.connect(service.data_dir / "sallyport.db")) as connection, connection:
        rows = [(first + number * SECOND, f"u{number}", "fw") for number in range(count)]
        connection.executemany(EVENT, rows)


def test_the_list_is_newest_first(service: Service, domain: str) -> None:
    """With the names of GetAuthLog in JSON, by the domain's name or id, and as a table."""
    rows = listed(service, "--domain", "gate")
    assert [row["user"] for row in rows] == ["ann", FORMULA, "ann"]
    assert rows[0] | {"domain": "gate", "decision": "reject", "reason": "wrong password", "method": "pap"} == rows[0]
    assert listed(service, "--domain", domain) == rows
    assert "wrong password" in service.ok("event", "list", "--domain", "gate")


def test_the_list_is_narrowed(service: Service, domain: str) -> None:
    """By a search, a stretch of time and a number."""
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
def test_what_cannot_be_asked(service: Service, domain: str, options: tuple[str, ...], status: int) -> None:
    """An unknown domain is refused, a missing domain is wrong usage; so is a malformed time."""
    for command in ("list", "export"):
        done = service.cli("event", command, *options)
        assert (done.returncode, done.stdout) == (status, "")
    assert service.cli("event", "list", "--domain", "gate", "--limit", "0").returncode == 2


def test_csv_is_read_by_a_spreadsheet_as_text(service: Service, domain: str) -> None:
    """A line of names, a line for each event, oldest first, and no cell that begins like a formula."""
    rows = list(csv.DictReader(io.StringIO(service.ok("event", "export", "--domain", "gate"))))
    assert tuple(rows[0]) == ALL_COLUMNS
    assert [row["user"] for row in rows] == ["ann", f"'{FORMULA}", "ann"]
    assert rows[0]["latencyMs"].replace(".", "").isdecimal()
    assert not any(sign in json.dumps(row, ensure_ascii=False).encode() for row in rows for sign in RED)


def test_json_lines_hold_what_was_sent(service: Service, domain: str) -> None:
    """One object a line, as the list has it, in octets that command no terminal."""
    text = service.ok("event", "export", "--domain", "gate", "--format", "jsonl")
    rows = [json.loads(line) for line in text.split("\n")]
    assert rows == list(reversed(listed(service, "--domain", "gate")))
    assert rows[2]["device_name"] == HOSTILE
    assert not any(sign in text.encode() for sign in RED)


def test_an_empty_export_has_its_line_of_names(service: Service, domain: str) -> None:
    """Where no event is in the stretch, CSV has the names and JSON lines nothing."""
    assert service.ok("event", "export", "--domain", "gate", "--to", "2001-01-01").strip() == ",".join(ALL_COLUMNS)
    assert service.ok("event", "export", "--domain", "gate", "--to", "2001-01-01", "--format", "jsonl") == ""


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_holds_what_standard_output_would(service: Service, domain: str, tmp_path: Path, form: str) -> None:
    """Octet for octet, readable by its owner alone; standard output stays empty, and an older file is replaced."""
    file = tmp_path / "events"
    file.write_text("old")
    asked = ("event", "export", "--domain", "gate", "--format", form)
    assert service.cli(*asked, "--output", str(file)).stdout == ""
    assert file.read_bytes().decode() == service.program(*asked, "--output", "-").stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_that_fails_leaves_the_file_alone(service: Service, domain: str, tmp_path: Path) -> None:
    """What was there is still there, and nothing half done lies beside it."""
    file = tmp_path / "events"
    file.write_text("old")
    assert service.cli("event", "export", "--domain", "nowhere", "--output", str(file)).returncode == 1
    assert [(each, each.read_text()) for each in tmp_path.iterdir()] == [(file, "old")]
    refused = service.cli("event", "export", "--domain", "gate", "--output", str(tmp_path / "none" / "events"))
    assert (refused.returncode, "No such file" in refused.stderr) == (1, True)


def test_a_link_stays_one_and_a_pipe_is_written_to(service: Service, domain: str, tmp_path: Path) -> None:
    """A name that leads elsewhere is followed; what is no ordinary file is never replaced by one."""
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


def test_more_events_than_a_page(stopped: RunningService) -> None:
    """Every event once and in order without a running service, and the same with one."""
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


def test_a_running_service_forgets(stopped: RunningService) -> None:
    """What is older than event_days is gone soon after the start."""
    write(stopped, 3, days=91)
    assert len(stopped.rows("select id from events")) == 3
    stopped.start()
    deadline = time.monotonic() + 10
    while stopped.rows("select id from events"):
        assert time.monotonic() < deadline
        time.sleep(0.01)

"""`sallyport bench`: its answers, its refusals, and what it leaves behind."""

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from sallyport.cli.benchmark.capacity import figures
from sallyport.cli.benchmark.measure import KINDS
from sallyport.cli.benchmark.traffic import HOST, AccountingRecords, LoadError, PapLogins, drive
from tests.cli import Service, add_client, add_user
from tests.cli.test_json import FIELDS
from tests.peers.postgres import database_in, needs_postgres, postgres_execute
from tests.running_service import PROGRAM, RunningService
from tests.waiting import eventually

SECRET = b"between bench and service"


def run(service: RunningService, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run `sallyport bench` for a second, in a process that may have children."""
    command = [PROGRAM, "bench", "--seconds", "1", *options]
    return subprocess.run(
        command, env=service.environ, cwd=service.directory, capture_output=True, text=True, check=False
    )


def test_the_answer_has_all_kinds_of_load(stopped: RunningService, tmp_path: Path) -> None:
    """Each kind of load has answers and figures. The command makes no installation, and removes its data."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = run(stopped, "--json", "--directory", str(folder))
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert answer.keys() == FIELDS["bench"]["plus"].keys()
    assert answer["phases"].keys() == KINDS.keys() >= figures().phases.keys()
    for phase in answer["phases"].values():
        assert phase["rate"] > 0 and 0 < phase["p50Ms"] <= phase["p99Ms"]
    assert answer["people"] > 0 and answer["memoryMib"] > 0
    assert list(folder.iterdir()) == []
    assert not stopped.data_dir.exists()


@needs_postgres
def test_two_workers_with_postgresql(stopped: RunningService, tmp_path: Path) -> None:
    """The measurement fills an empty database, and the database is not accepted again."""
    url = database_in(tmp_path, is_empty=True)
    done = run(stopped, "--json", "--database-url", url, "--workers", "2")
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert (answer["engine"], answer["workers"]) == ("PostgreSQL", 2)
    assert "dropdb" in done.stderr
    again = run(stopped, "--database-url", url)
    assert again.returncode == 1
    assert "is not empty" in again.stderr


@needs_postgres
def test_a_database_of_another_program_is_not_touched(stopped: RunningService, tmp_path: Path) -> None:
    """A table in a schema of its own is enough for a refusal."""
    url = database_in(tmp_path, is_empty=True)
    postgres_execute(url, "create schema other", ())
    postgres_execute(url, "create table other.things (id int)", ())
    done = run(stopped, "--database-url", url)
    assert done.returncode == 1
    assert "is not empty" in done.stderr


def test_workers_need_postgresql(stopped: RunningService) -> None:
    """Several processes with an embedded database are refused, with the option to add."""
    done = run(stopped, "--workers", "2")
    assert done.returncode == 1
    assert "add --database-url" in done.stderr


def test_a_signal_removes_the_data(stopped: RunningService, tmp_path: Path) -> None:
    """SIGTERM in the middle of the measurement ends the service and removes its data."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [PROGRAM, "bench", "--seconds", "600", "--directory", folder]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(command, env=stopped.environ, cwd=tmp_path, stdout=output, stderr=output)
    try:
        eventually(lambda: any(b'"event": "ready"' in log.read_bytes() for log in folder.glob("*/log")))
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + signal.SIGTERM
    assert list(folder.iterdir()) == []


def test_a_refused_login_ends_the_measurement(service: Service) -> None:
    """A wrong password makes the measurement void. The error names the answer."""
    add_client(service, "bench", HOST, secret=SECRET.decode())
    add_user(service, "default", "ann")
    logins = PapLogins(0, SECRET, [(b"ann", b"wrong")])
    with pytest.raises(LoadError, match="Access-Reject"):
        drive(service.ports.auth, SECRET, [logins], 0.1)


def test_a_service_that_has_ended_is_reported() -> None:
    """A closed port ends the measurement at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        port = sock.getsockname()[1]
    with pytest.raises(LoadError, match="closed its port"):
        drive(port, SECRET, [AccountingRecords(0, SECRET, b"ann")], 0.1)

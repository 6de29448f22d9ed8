"""`sallyport bench`: its answers, its refusals, and what it leaves behind."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sallyport.cli.benchmark.capacity import figures
from sallyport.cli.benchmark.measure import KINDS
from sallyport.cli.benchmark.processes import process_tree
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
        assert phase["rate"] > 0 and phase["p50Ms"] > 0
        assert phase["p99Ms"] is None or phase["p50Ms"] <= phase["p99Ms"]
    assert answer["stations"] > 0 and answer["memoryMib"] > 0
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
    assert all(phase["databaseMs"] > 0 for phase in answer["phases"].values())
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


@contextmanager
def measuring(stopped: RunningService, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `sallyport bench` with its data in a folder, until the block ends. Its service is ready."""
    command = [PROGRAM, "bench", "--seconds", "300", "--directory", folder]
    with (folder.parent / "output").open("wb") as output:
        process = subprocess.Popen(command, env=stopped.environ, cwd=folder.parent, stdout=output, stderr=output)
    try:
        eventually(lambda: any(b'"event": "ready"' in log.read_bytes() for log in folder.glob("*/log")))
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_the_data(stopped: RunningService, tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM, or the end of the terminal, in the middle of the measurement ends the service and removes its data."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with measuring(stopped, folder) as process:
        process.send_signal(number)
        process.wait(60)
    assert process.returncode == 128 + number
    assert list(folder.iterdir()) == []


def test_a_killed_measurement_leaves_no_service(stopped: RunningService, tmp_path: Path) -> None:
    """The kernel ends the service with the command."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with measuring(stopped, folder) as process:
        services = process_tree(process.pid)[1:]
        process.kill()
    assert services
    eventually(lambda: not any(_runs(each) for each in services))


def _runs(process_id: int) -> bool:
    """Return whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_running_service_is_named(service: Service) -> None:
    """The measurement would slow down the logins of a service on this machine, so it needs the option `--yes`."""
    done = run(service, "--database-url", "mysql://")
    assert done.returncode == 1
    assert "a service runs on this machine" in done.stderr
    assert "--yes" in done.stderr
    allowed = run(service, "--database-url", "mysql://", "--yes")
    assert "the URL must begin with" in allowed.stderr


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

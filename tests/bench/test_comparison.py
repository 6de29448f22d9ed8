"""A comparison is fair if the peer does the configured work. An unfair comparison is void."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from sallyport.cli.benchmark import machine
from tests.peers.postgres import SETTINGS, made, needs_postgres

from . import mschap
from .freeradius import freeradius, postgres_freeradius
from .freeradius_accounting import accounting_freeradius, package_file
from .radius import check_fair
from .radiusd import find_program
from .radload import Load, compile_radload, parse_load, run_radload
from .settings import BenchmarkError

pytestmark = pytest.mark.bench

LINE = (
    '{"sent": 10, "answered": 10, "accepts": 10, "rejects": 0, "challenges": 0, "lost": 0, "retransmitted": 0,'
    ' "bad_replies": 0, "unsigned_replies": 0, "seconds": 0.1, "requests_per_second": 100.0,'
    ' "latency_ms": {"p50": 0.1, "p90": 0.2, "p99": 0.3, "p999": 0.35, "max": 0.4}, "server_cpu_seconds": 0.01,'
    ' "server_cpu_us_per_request": 1000.0, "rss_before_kib": 1, "rss_after_kib": 2}'
)


def load(**changes: int) -> Load:
    """Return the measurements of ten accepts, with some fields changed."""
    return replace(parse_load(LINE), **changes)


def has_freeradius() -> bool:
    """Return whether the daemon and a compiler are installed."""
    try:
        find_program()
    except BenchmarkError:
        return False
    return shutil.which("cc") is not None


def has_radacct() -> bool:
    """Return whether the schema of the package is installed and readable."""
    try:
        package_file("schema.sql")
    except BenchmarkError:
        return False
    return has_freeradius()


def test_a_fair_load_passes() -> None:
    """A load is fair if all answers are accepts, and if all are recorded or the server records none."""
    check_fair("x", load(), 10)
    check_fair("x", load(), None)
    check_fair("x", load(answered=9, accepts=9, lost=1), 10)


@pytest.mark.parametrize(
    ("changes", "recorded"),
    [
        ({}, 9),
        ({}, 11),
        ({"accepts": 9, "rejects": 1}, 10),
        ({"bad_replies": 1}, 10),
        ({"answered": 0, "accepts": 0}, 0),
    ],
    ids=["fewer recorded", "more recorded", "a reject", "a forged reply", "no answer"],
)
def test_an_unfair_load_is_void(changes: dict[str, int], recorded: int) -> None:
    """Each doubt about a measurement ends the benchmark."""
    with pytest.raises(BenchmarkError):
        check_fair("x", load(**changes), recorded)


def test_the_machine_is_described(tmp_path: Path) -> None:
    """The lines above the table name the processor, the memory, the kernel, Python and the file system."""
    told = machine.describe(tmp_path)
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "- processor",
        "- memory",
        "- kernel",
        "- Python",
        "- databases on",
    ]
    assert "unknown" not in told


@pytest.mark.peer
@pytest.mark.skipif(not has_radacct(), reason="freeradius with its SQL schema, or cc, is not installed")
def test_freeradius_records_each_session(tmp_path: Path) -> None:
    """FreeRADIUS writes the start, interim record and stop of each session to radacct, so both servers do the same
    work.
    """
    program, directory = compile_radload(tmp_path), tmp_path / "peer"
    directory.mkdir()
    with accounting_freeradius(directory) as peer:
        arguments = ["-a", "-p", str(peer.port), "-n", "3072", "-u", "10", "-N", "5", "-t", "10"]
        told = run_radload(program, arguments, seconds=60)
        assert peer.count_events is not None
        assert peer.count_events() == told.accepts == told.answered == 3072


@pytest.mark.peer
@pytest.mark.skipif(not has_freeradius(), reason="freeradius or cc is not installed")
def test_freeradius_checks_mschap(tmp_path: Path) -> None:
    """FreeRADIUS accepts only the user's own response and records accepts and rejects, so both servers do the same
    work.
    """
    program, directory, proofs = compile_radload(tmp_path), tmp_path / "peer", tmp_path / "proofs"
    directory.mkdir()
    right, wrong = (mschap.proof(f"user{number}", "pass0").hex() for number in range(2))
    proofs.write_text(f"{right}\n{wrong}\n")
    with mschap.mschap_freeradius(directory, recording=True) as peer:
        arguments = ["-p", str(peer.port), "-n", "20", "-u", "2", "-c", str(proofs), "-t", "10"]
        told = run_radload(program, arguments, seconds=30)
        assert peer.count_events is not None
        assert (told.accepts, told.rejects, peer.count_events()) == (10, 10, 20)


@pytest.mark.peer
@needs_postgres
@pytest.mark.skipif(not has_freeradius(), reason="freeradius or cc is not installed")
def test_freeradius_records_in_postgres(tmp_path: Path) -> None:
    """FreeRADIUS with PostgreSQL records an event for each accept and each reject: both servers do the same work."""
    program, directory = compile_radload(tmp_path), tmp_path / "peer"
    directory.mkdir()
    with tempfile.TemporaryDirectory(prefix="sallyport-postgres-") as place:
        server = made(Path(place), SETTINGS)
        try:
            with postgres_freeradius(directory, server, users=10) as peer:
                arguments = ["-p", str(peer.port), "-n", "200", "-u", "10", "-b", "30", "-N", "5", "-t", "10"]
                told = run_radload(program, arguments, seconds=30)
                assert peer.count_events is not None
                assert peer.count_events() == told.answered == 200
        finally:
            server.stop("immediate")


@pytest.mark.peer
@pytest.mark.skipif(not has_freeradius(), reason="freeradius or cc is not installed")
def test_freeradius_records_each_accept_and_reject(tmp_path: Path) -> None:
    """FreeRADIUS records an event for each accept and each reject, so both servers do the same work."""
    program, directory = compile_radload(tmp_path), tmp_path / "peer"
    directory.mkdir()
    with freeradius(directory, users=10, recording=True) as peer:
        arguments = ["-p", str(peer.port), "-n", "200", "-u", "10", "-b", "30", "-N", "5", "-t", "10"]
        told = run_radload(program, arguments, seconds=30)
        assert peer.count_events is not None
        assert peer.count_events() == told.answered == 200
    assert told.rejects > 0
    assert told.accepts + told.rejects == 200

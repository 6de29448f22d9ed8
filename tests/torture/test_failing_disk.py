"""Tests of a disk that fails during a transaction. No answer is sent then, and no wrong answer is ever sent."""

import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running_service import RunningService, running_service
from tests.torture.load import Loads, populate
from tests.torture.test_full_disk import eventually, ready, store_errors
from tests.torture.trace import needs_attached_strace

SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0"}
NO_LIMIT = resource.RLIM_INFINITY

pytestmark = [pytest.mark.torture, pytest.mark.system]


def test_no_answer_is_sent_while_the_log_cannot_grow(tmp_path: Path) -> None:
    """After an I/O error during a transaction no request is answered and the service is not ready.

    When the error has ended, all requests are answered and stored once.
    """
    with running_service(tmp_path, SETTINGS, fresh=True) as service, Loads(service) as loads:
        populate(service)
        assert loads.run() > 0
        log = service.data_dir / "sallyport.db-wal"
        resource.prlimit(service.process_id, resource.RLIMIT_FSIZE, (log.stat().st_size + 10_000, NO_LIMIT))
        eventually(lambda: loads.run(0.1) == 0 and not ready(service), 10)
        assert store_errors(service) > 0
        resource.prlimit(service.process_id, resource.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
        eventually(lambda: ready(service), 5)
        assert loads.run() > 0
        loads.check()


@needs_attached_strace
@pytest.mark.parametrize(
    ("call", "step", "error"),
    # A transaction of many logins is some hundred writes: the steps are longer, so that not every one fails.
    [("fdatasync", 7, "EIO"), ("pwrite64", 997, "EIO"), ("pwrite64", 1009, "ENOSPC"), ("pwrite64", 1013, "EDQUOT")],
)
def test_errors_that_come_and_go(tmp_path: Path, call: str, step: int, error: str) -> None:
    """Some transactions fail. Requests that were answered are stored. The others are answered later and stored once."""
    with running_service(tmp_path, SETTINGS, fresh=True) as service, Loads(service) as loads:
        populate(service)
        with failing(service, tmp_path / "trace", f"{call}:error={error}:when=5+{step}"):
            eventually(lambda: failed_and_recovered(service, loads), 60)
            assert loads.answered < loads.sent
        eventually(lambda: ready(service), 5)
        assert loads.run() > 0
        loads.check()


@needs_attached_strace
def test_failing_reads_stop_no_known_user(tmp_path: Path) -> None:
    """While the store cannot be read, lists are refused and known users can log in.

    Afterwards everything works again.
    """
    with running_service(tmp_path, SETTINGS, fresh=True) as service, Loads(service) as loads:
        populate(service)
        assert loads.run() > 0
        with failing(service, tmp_path / "trace", "pread64:error=EIO:when=1+1"):
            eventually(lambda: list_devices(service) == 503, 5)
            for _ in range(4):  # long enough for each of the background tasks to fail
                eventually(lambda: loads.run(0.5), 20)
        eventually(lambda: list_devices(service) == 200, 5)
        assert "configuration_not_read" in service.log()
        loads.check()


def test_no_file_can_be_opened(tmp_path: Path) -> None:
    """When no more files can be opened, logins continue, because the files of the store are already open.

    Other requests work again later.
    """
    with running_service(tmp_path, SETTINGS, fresh=True) as service, Loads(service) as loads:
        populate(service)
        used = max(int(each.name) for each in Path(f"/proc/{service.process_id}/fd").iterdir()) + 1
        (_, hard) = resource.prlimit(service.process_id, resource.RLIMIT_NOFILE)
        resource.prlimit(service.process_id, resource.RLIMIT_NOFILE, (used, hard))
        for _ in range(8):
            eventually(loads.run, 20)
        resource.prlimit(service.process_id, resource.RLIMIT_NOFILE, (hard, hard))
        eventually(lambda: list_devices(service) == 200, 5)
        loads.check()


def failed_and_recovered(service: RunningService, loads: Loads) -> bool:
    """Run a few more transactions. Return whether some of them failed and some did not."""
    loads.run(0.1, window=16)
    return store_errors(service) > 1 and loads.answered > 0


def list_devices(service: RunningService) -> int:
    """Search devices and return the status. The search has to read pages that are not in a cache."""
    body = {"orgId": 1, "tenantId": 1, "domainId": 1, "pageId": 1, "pageSize": 100, "search": "nas-1"}
    return service.request("POST", "/network_device/ListDevices", json=body).status_code


@contextmanager
def failing(service: RunningService, output: Path, fault: str) -> Iterator[None]:
    """Let system calls of the service fail until the block ends.

    fault: the fault in the syntax of strace's option `inject`.
    """
    with injected(service, output, fault) as strace:
        try:
            yield
        finally:
            strace.send_signal(signal.SIGINT)
            strace.wait(10)


@contextmanager
def injected(service: RunningService, output: Path, fault: str) -> Iterator[subprocess.Popen[bytes]]:
    """Attach strace to the service to inject a fault. The block has to end strace."""
    process_id = service.process_id
    watch = ["strace", "-f", "-qq", "-e", "signal=none", "-e", f"trace={fault.partition(':')[0]}"]
    with subprocess.Popen([*watch, "-e", f"inject={fault}", "-o", str(output), "-p", str(process_id)]) as strace:
        try:
            eventually(lambda: is_traced(process_id), 10)
            yield strace
        finally:
            strace.kill()  # unless it has ended


def is_traced(process_id: int) -> bool:
    """Return whether a tracer is attached to every thread of a process."""
    threads = Path(f"/proc/{process_id}/task").iterdir()
    return all("\nTracerPid:\t0\n" not in (thread / "status").read_text() for thread in threads)

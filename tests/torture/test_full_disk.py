"""Tests of a full disk: nothing that was answered is lost, and nothing is answered that cannot be stored.

When there is room again, the service recovers without help.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sallyport.store.data_folder import Reserve
from tests.running_service import RunningService, ServiceError
from tests.torture.disk import ServiceOnDisk, SmallDisk, needs_mounts, small_disk
from tests.torture.load import Loads, populate

MIB = 1 << 20
DISK_MIB, RESERVE_MIB = 32, 4
SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_DISK_RESERVE_MIB": str(RESERVE_MIB)}
GIVEN = "disk_reserve_released"

pytestmark = [pytest.mark.torture, pytest.mark.system, needs_mounts]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """An empty disk."""
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place, DISK_MIB) as disk:
        yield disk


def test_a_log_on_the_same_disk_does_no_harm(disk: SmallDisk, tmp_path: Path) -> None:
    """If standard error is a file on the full disk, only log lines are lost."""
    with started(disk, tmp_path, log=disk.outside / "log") as service, Loads(service) as loads:
        loads.run()
        disk.fill()
        eventually(lambda: loads.run() and not holds_reserve(service), 20)
        disk.fill()
        eventually(lambda: loads.run() == 0 and not ready(service), 30)
        disk.clear()
        eventually(lambda: ready(service) and holds_reserve(service), 5)
        eventually(lambda: loads.run() > 100, 20)
        loads.check()
        assert service.stop() == 0


def test_a_first_start_on_a_full_disk_can_be_repeated(disk: SmallDisk, tmp_path: Path) -> None:
    """A first start on a full disk ends with one line that contains the cause.

    It leaves nothing that would prevent a later start.
    """
    service = ServiceOnDisk(disk, tmp_path, SETTINGS)
    try:
        for left in (0, 16 << 10, 64 << 10, 200 << 10):
            disk.fill(left)
            with pytest.raises(ServiceError):
                service.start()
            line = service.log().splitlines()[-1]
            assert json.loads(line)["event"] == "service_failed"
            assert re.search("No space left|disk is full|disk I/O error", line), line
            disk.clear()
        assert "Traceback" not in service.log()
        service.start()
        populate(service)
    finally:
        service.kill()


def test_the_reserve_has_the_size_that_is_set(disk: SmallDisk) -> None:
    """A reserve of another size is changed to the configured size. Without room no reserve is allocated."""
    path = disk.outside / "reserve"
    path.write_bytes(bytes(MIB))
    for mib in (3, 2, 0):
        reserve = Reserve(path, mib * MIB)
        reserve.refill()
        assert not reserve.released
        assert disk.free() == (DISK_MIB - mib) * MIB
    reserve = Reserve(path, DISK_MIB * MIB // 2 + MIB)
    reserve.refill()
    assert reserve.released
    assert not path.exists()
    assert reserve.has_room(DISK_MIB * MIB)
    assert not reserve.has_room(DISK_MIB * MIB + 1)
    assert disk.free() == DISK_MIB * MIB


@contextmanager
def started(disk: SmallDisk, directory: Path, *, log: Path | None = None) -> Iterator[RunningService]:
    """Yield a service on the disk, with users and an allocated reserve.

    log: the path of the log, which is not on the disk by default.
    """
    service = ServiceOnDisk(disk, directory, SETTINGS)
    service.log_path = log or service.log_path
    try:
        service.start()
        populate(service)
        assert holds_reserve(service)
        yield service
    finally:
        service.kill()


def test_a_full_disk_loses_nothing_and_recovers_by_itself(disk: SmallDisk, tmp_path: Path) -> None:
    """Logins continue until the reserve is used, and then get no answer.

    All answered requests are stored, and the service recovers when there is room.
    """
    with started(disk, tmp_path) as service, Loads(service) as loads:
        loads.run()
        disk.fill()
        eventually(lambda: loads.run() and GIVEN in service.log(), 20)
        for _ in range(5):  # none is, if the reserve was given to the log
            eventually(loads.run, 20)
        disk.fill()
        eventually(lambda: loads.run() == 0 and not ready(service), 30)
        errors = store_errors(service)
        for _ in range(20):
            assert not ready(service), "ready although it cannot keep a login"
            assert loads.run(0.05) == 0
        assert store_errors(service) > errors
        disk.clear()
        eventually(lambda: ready(service), 5)
        eventually(lambda: holds_reserve(service), 5)
        eventually(lambda: loads.run() > 100, 20)
        loads.check()
        assert service.stop() == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_it_starts_on_a_full_disk(disk: SmallDisk, tmp_path: Path, end: str) -> None:
    """With the reserve the service can start and answer on a full disk, both after a stop and after a kill."""
    with started(disk, tmp_path) as service, Loads(service) as loads:
        loads.run()
        getattr(service, end)()
        disk.fill()
        assert disk.free() == 0
        service.start()
        eventually(loads.run, 5)
        assert GIVEN in service.log()
        disk.clear()
        eventually(lambda: holds_reserve(service), 5)
        loads.check()


def ready(service: RunningService) -> bool:
    """Return whether /readyz has the status 200. Otherwise the status must be 503."""
    status = service.request("GET", "/readyz", token="").status_code
    assert status in {200, 503}
    return status == 200


def store_errors(service: RunningService) -> float:
    """Return the number of failed transactions of the store."""
    text = service.request("GET", "/metrics", token="").text
    return sum(map(float, re.findall(r"^sallyport_store_errors_total\{.*\} (\S+)$", text, re.MULTILINE)))


def holds_reserve(service: RunningService) -> bool:
    """Return whether the complete reserve is allocated on the disk."""
    try:
        return (service.data_dir / "sallyport.db.reserve").stat().st_blocks * 512 >= RESERVE_MIB * MIB
    except FileNotFoundError:
        return False


def eventually(holds: Callable[[], object], seconds: float) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)

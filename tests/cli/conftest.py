"""Fixtures: a running service that the tests of a module share, and a stopped one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import Service
from tests.running_service import RunningService

SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running service for all tests of a module. Each test uses names and addresses of its own."""
    running = Service(tmp_path_factory.mktemp("service"), SETTINGS)
    running.start()
    try:
        yield running
        running.stop()
    finally:
        running.kill()


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service that has never been started. A test may start it."""
    service = RunningService(tmp_path, SETTINGS)
    yield service
    service.kill()

"""A running service for the tests of a module, and one that does not run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import RunningService, running_service

SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A running service that the tests of a module share: each takes names and addresses of its own."""
    with running_service(tmp_path_factory.mktemp("service"), SETTINGS) as running:
        yield running


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[RunningService]:
    """A service that was never started; a test may start it."""
    service = RunningService(tmp_path, SETTINGS)
    yield service
    service.kill()

"""A machine beneath a prefix, and the service that its agent talks to."""

from pathlib import Path

import pytest

from tests.agent.endpoint.host import Host, Service, bare_host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with nothing but what the system brings."""
    return bare_host(tmp_path)


@pytest.fixture
def service() -> Service:
    """A service that wants nothing yet."""
    return Service()

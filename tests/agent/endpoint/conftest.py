"""Fixtures: a machine in a directory, and the service of its agent."""

from pathlib import Path

import pytest

from tests.agent.endpoint.host import Host, Service, bare_host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine that has only the accounts of a new system."""
    return bare_host(tmp_path)


@pytest.fixture
def service() -> Service:
    """Return a service whose state has no users."""
    return Service()

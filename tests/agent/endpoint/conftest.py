"""Fixtures: a machine below a prefix, and its agent's service."""

from pathlib import Path

import pytest

from tests.agent.endpoint.host import Host, Service, bare_host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine with the accounts of a new system alone."""
    return bare_host(tmp_path)


@pytest.fixture
def service() -> Service:
    """Return a service whose state has no users."""
    return Service()

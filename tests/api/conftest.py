"""One service for all tests of the operations. Each test has a tenant of its own."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api import holders
from tests.api.hosts import Host
from tests.api.world import Tenant, World
from tests.areas import areas, clock
from tests.running_service import running_service

__all__ = ["areas", "clock", "holder", "host", "tenant", "world"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return the service, which sends each reject without delay."""
    directory = tmp_path_factory.mktemp("api")
    with running_service(directory, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        url = f"http://127.0.0.1:{service.ports.http}"
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as http:
            yield World(service, http)


@pytest.fixture
def tenant(world: World) -> Tenant:
    """Return a new tenant with the domain corp and its user ann."""
    return world.tenant()


@pytest.fixture
def host(tenant: Tenant) -> Host:
    """Return an enrolled machine of the tenant."""
    return Host.enrol(tenant, "web", privateIpAddress="10.0.0.7", hostName="web.example.org")


@pytest.fixture
def holder(tenant: Tenant) -> holders.Holder:
    """Return ann's wallet in a new tenant."""
    return holders.enrol(tenant)

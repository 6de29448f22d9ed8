"""A change by API or by command holds for the very next RADIUS request: nothing is polled, no cache has to expire.

Each test changes something and looks at the one request that follows. That a request is not answered is seen by a
later one of another client that is: answers leave in the order in which the requests came.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.radius_client import RadiusClient
from tests.service import RunningService, running_service

SECRET, OTHER_SECRET = "the secret of the tests", "another secret"
STANDING = "127.0.0.1"
USER, PASSWORD = "ann", "hello"
SCOPE = {"orgId": 1, "tenantId": 1}
DOMAIN = {**SCOPE, "domainId": 1}
TENANT = ("--org", "1", "--tenant", "1")
ADDRESSES = count(10)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with a user and a client that is always there."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.ok("client", "add", "standing", "--address", STANDING, "--secret", SECRET, *TENANT)
        service.ok("user", "add", USER, "--domain", "default", "--password", "-", input=PASSWORD)
        # Without a provider the fallback of enforce mode accepts.
        service.ok("domain", "mode", "default", "monitor", "--fallback", "allow")
        yield service


@pytest.fixture
def address() -> str:
    """A loopback address that no other test uses."""
    return f"127.0.0.{next(ADDRESSES)}"


class Way(Protocol):
    """How an admin makes a change."""

    def set_mode(self, mode: str) -> None:
        """Switch the domain."""

    def add_client(self, name: str, address: str) -> None:
        """Add a RADIUS client."""

    def remove_client(self, name: str) -> None:
        """Remove a RADIUS client."""


class Api:
    """Over HTTP."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._ids: dict[str, int] = {}

    def set_mode(self, mode: str) -> None:
        self._service.post("/ad/updateDomainEnforcement", {**DOMAIN, "enforcementMode": mode})

    def add_client(self, name: str, address: str) -> None:
        body = {**SCOPE, "name": name, "address": address, "secret": SECRET}
        self._ids[name] = self._service.post("/network_device/AddClient", body)["clientId"]

    def remove_client(self, name: str) -> None:
        self._service.post("/network_device/DeleteClient", {**SCOPE, "clientId": self._ids[name]})

    def change_client(self, name: str, **fields: Any) -> None:
        """Change a RADIUS client."""
        self._service.post("/network_device/UpdateClient", {**SCOPE, "clientId": self._ids[name], **fields})


class CommandLine:
    """By the program."""

    def __init__(self, service: RunningService) -> None:
        self._service = service

    def set_mode(self, mode: str) -> None:
        self._service.ok("domain", "mode", "default", mode)

    def add_client(self, name: str, address: str) -> None:
        self._service.ok("client", "add", name, "--address", address, "--secret", SECRET, *TENANT)

    def remove_client(self, name: str) -> None:
        self._service.ok("client", "remove", name, *TENANT)


@pytest.fixture(params=[Api, CommandLine])
def way(request: pytest.FixtureRequest, service: RunningService) -> Way:
    """Each way in turn."""
    made: Way = request.param(service)
    return made


def test_a_switched_domain(service: RunningService, way: Way) -> None:
    """In enforce mode the next event would not have been anything; in monitor mode it would have been an accept."""
    with service.radius(SECRET) as device:
        for mode, would_have_been in (("enforce", ""), ("monitor", "accept")) * 2:
            way.set_mode(mode)
            assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
            assert last_event(service)["wouldHaveBeen"] == would_have_been


def test_the_break_glass(service: RunningService) -> None:
    """`domain mode --all monitor` holds for the next login."""
    CommandLine(service).set_mode("enforce")
    service.ok("domain", "mode", "--all", "monitor")
    with service.radius(SECRET) as device:
        assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
    assert last_event(service)["wouldHaveBeen"] == "accept"


def test_a_switched_domain_under_load(service: RunningService) -> None:
    """Also while other logins come without a pause."""
    api = Api(service)
    with logins_without_pause(service), service.radius(SECRET) as device:
        for number in range(20):
            mode = ("enforce", "monitor")[number % 2]
            api.set_mode(mode)
            station = f"switched-{number}"
            assert device.login(USER, PASSWORD, CALLING_STATION_ID=station.encode()) == ACCESS_ACCEPT
            (row,) = service.rows("select would_have_been from events where station = ?", station)
            assert row == ("" if mode == "enforce" else "accept",)


def test_a_client_that_is_added_and_removed(service: RunningService, way: Way, address: str) -> None:
    """Its packet is dropped before, answered right after it was added, and dropped right after it was removed."""
    with service.radius(SECRET, source=address) as device:
        assert not is_answered(service, device)
        for _ in range(2):
            way.add_client(f"new {address}", address)
            assert is_answered(service, device)
            way.remove_client(f"new {address}")
            assert not is_answered(service, device)


def test_a_client_whose_secret_is_changed(service: RunningService, address: str) -> None:
    """The next packet is opened with the new secret, and one under the old secret is dropped."""
    api = Api(service)
    api.add_client(f"changed {address}", address)
    with service.radius(SECRET, source=address) as old, service.radius(OTHER_SECRET, source=address) as new:
        assert is_answered(service, old)
        assert not is_answered(service, new)
        api.change_client(f"changed {address}", secret=OTHER_SECRET)
        assert is_answered(service, new)
        assert not is_answered(service, old)


def test_a_client_that_must_sign(service: RunningService, address: str) -> None:
    """The next unsigned packet is dropped once signatures are required, and answered once they are not."""
    api = Api(service)
    api.add_client(f"signs {address}", address)
    with service.radius(SECRET, source=address) as device:
        for required in ("no", "yes", "no"):
            api.change_client(f"signs {address}", requireMessageAuthenticator=required)
            assert is_answered(service, device, signed=False) is (required == "no")


def test_a_client_that_gets_another_domain(service: RunningService, address: str) -> None:
    """The next login belongs to the new domain, which has no such user."""
    api = Api(service)
    api.add_client(f"moves {address}", address)
    domain = service.post("/ad/AddDomain", {**SCOPE, "domainName": f"of {address}"})["domainId"]
    with service.radius(SECRET, source=address) as device:
        assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
        api.change_client(f"moves {address}", domainIds=[domain])
        assert device.login(USER, PASSWORD) == ACCESS_REJECT
    (event,) = service.rows("select domain_id, reason from events order by id desc limit 1")
    assert event == (domain, "unknown user")


def test_a_deleted_device(service: RunningService) -> None:
    """The next request registers it again, with a new id and one registration more; it is not listed before."""
    with service.radius(SECRET) as device:
        ids = []
        for registrations in range(1, 5):
            assert device.login(USER, PASSWORD, NAS_IDENTIFIER=b"deleted again and again") == ACCESS_ACCEPT
            (row,) = listed(service, "deleted again and again")
            assert (row["registrations"], row["request_count"]) == (registrations, 1)
            ids.append(row["device_id"])
            service.post("/network_device/DeleteDevice", {**DOMAIN, "deviceId": row["device_id"]})
            assert listed(service, "deleted again and again") == []
    assert ids == sorted(set(ids))


def test_a_user_that_is_added_and_removed(service: RunningService) -> None:
    """A user is refused before the addition, accepted right after it and refused right after the removal. A
    second user of that name is another.
    """
    with service.radius(SECRET) as device:
        assert device.login("eve", "first") == ACCESS_REJECT
        for password in ("first", "second"):
            service.ok("user", "add", "eve", "--domain", "default", "--password", "-", input=password)
            assert device.login("eve", password) == ACCESS_ACCEPT
            service.ok("user", "remove", "eve", "--domain", "default")
            assert device.login("eve", password) == ACCESS_REJECT
        service.ok("user", "add", "eve", "--domain", "default", "--password", "-", input="third")
        assert device.login("eve", "second") == ACCESS_REJECT


def test_a_change_without_a_running_service_holds_after_its_start(tmp_path: Path) -> None:
    """A change made in the store before the start applies to the first request."""
    with running_service(tmp_path, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.stop()
        service.ok("client", "add", "offline", "--address", STANDING, "--secret", SECRET, *TENANT)
        service.ok("user", "add", USER, "--domain", "default", "--password", "-", input=PASSWORD)
        service.ok("domain", "mode", "default", "enforce", "--fallback", "allow")
        service.start()
        with service.radius(SECRET) as device:
            assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
        assert last_event(service)["wouldHaveBeen"] == ""


def last_event(service: RunningService) -> dict[str, Any]:
    """The newest entry of the log of logins."""
    event: dict[str, Any] = service.post("/ad/GetAuthLog", {**DOMAIN, "pageId": 1, "pageSize": 1})["events"][0]
    return event


def listed(service: RunningService, name: str) -> list[dict[str, Any]]:
    """The devices of a name."""
    chosen = {"filterBy": "NAS_IDENTIFIER", "value": name}
    body = {**DOMAIN, "pageId": 1, "pageSize": 10, "filter": chosen}
    found: list[dict[str, Any]] = service.post("/network_device/ListDevices", body)["network_devices"]
    return found


def is_answered(service: RunningService, device: RadiusClient, *, signed: bool = True) -> bool:
    """Send one login; whether its answer is there when a later login's is."""
    request = device.packet(USER, PASSWORD, signed=signed)
    device.send(request)
    with service.radius(SECRET) as later:
        assert later.login(USER, PASSWORD) == ACCESS_ACCEPT
    device.sock.setblocking(False)
    try:
        code, _ = device.receive(request)
    except BlockingIOError:
        return False
    assert code == ACCESS_ACCEPT
    return True


@contextmanager
def logins_without_pause(service: RunningService) -> Iterator[None]:
    """A thread that logs in again and again for the time of the block."""
    ended, failed = threading.Event(), []

    def log_in() -> None:
        with service.radius(SECRET) as device:
            while not ended.is_set():
                if device.login(USER, PASSWORD) != ACCESS_ACCEPT:
                    failed.append("a login was refused")

    thread = threading.Thread(target=log_in)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(10)
    assert not thread.is_alive()
    assert not failed

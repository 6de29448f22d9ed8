"""Tests that a change by API or command applies to the next RADIUS request. There is no polling, and no cache has to
expire.

Each test makes a change and examines the next request. To detect that a request has no reply, the test sends a later
request from another client and waits for its reply, because replies are sent in the order of the requests.
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
from tests.running_service import RunningService, running_service

SECRET, OTHER_SECRET = "the secret of the tests", "another secret"
STANDING = "127.0.0.1"
USER, PASSWORD = "ann", "hello"
SCOPE = {"orgId": 1, "tenantId": 1}
DOMAIN = {**SCOPE, "domainId": 1}
TENANT = ("--org", "1", "--tenant", "1")
ADDRESSES = count(10)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with a user and a permanent client."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.ok("client", "add", "standing", "--address", STANDING, "--secret", SECRET, *TENANT)
        service.ok("user", "add", USER, "--domain", "default", "--password", "-", input=PASSWORD)
        # Without a provider the fallback of enforce mode accepts.
        service.ok("domain", "mode", "default", "monitor", "--fallback", "allow")
        yield service


@pytest.fixture
def address() -> str:
    """Return a loopback address that no other test uses."""
    return f"127.0.0.{next(ADDRESSES)}"


class Admin(Protocol):
    """The changes that an admin makes."""

    def set_mode(self, mode: str) -> None:
        """Switch the domain."""

    def add_client(self, name: str, address: str) -> None:
        """Add a RADIUS client."""

    def remove_client(self, name: str) -> None:
        """Remove a RADIUS client."""


class Api:
    """An admin that uses the HTTP API."""

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
    """An admin that uses the command line."""

    def __init__(self, service: RunningService) -> None:
        self._service = service

    def set_mode(self, mode: str) -> None:
        self._service.ok("domain", "mode", "default", mode)

    def add_client(self, name: str, address: str) -> None:
        self._service.ok("client", "add", name, "--address", address, "--secret", SECRET, *TENANT)

    def remove_client(self, name: str) -> None:
        self._service.ok("client", "remove", name, *TENANT)


@pytest.fixture(params=[Api, CommandLine])
def admin(request: pytest.FixtureRequest, service: RunningService) -> Admin:
    """Return an admin of each kind."""
    made: Admin = request.param(service)
    return made


def test_a_new_mode_applies_to_the_next_login(service: RunningService, admin: Admin) -> None:
    """In enforce mode the event has no wouldHaveBeen. In monitor mode it is `accept`."""
    with service.radius(SECRET) as device:
        for mode, would_have_been in (("enforce", ""), ("monitor", "accept")) * 2:
            admin.set_mode(mode)
            assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
            assert last_event(service)["wouldHaveBeen"] == would_have_been


def test_break_glass_applies_to_the_next_login(service: RunningService) -> None:
    """`domain mode --all monitor` switches the domain to monitor mode."""
    CommandLine(service).set_mode("enforce")
    service.ok("domain", "mode", "--all", "monitor")
    with service.radius(SECRET) as device:
        assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
    assert last_event(service)["wouldHaveBeen"] == "accept"


def test_a_new_mode_applies_to_the_next_login_under_load(service: RunningService) -> None:
    """The new mode applies to the next login, even if other logins arrive without a pause."""
    api = Api(service)
    with logins_without_pause(service), service.radius(SECRET) as device:
        for number in range(20):
            mode = ("enforce", "monitor")[number % 2]
            api.set_mode(mode)
            station = f"switched-{number}"
            assert device.login(USER, PASSWORD, CALLING_STATION_ID=station.encode()) == ACCESS_ACCEPT
            (row,) = service.rows("select would_have_been from events where station = ?", station)
            assert row == ("" if mode == "enforce" else "accept",)


def test_a_client_is_answered_between_its_addition_and_removal(
    service: RunningService, admin: Admin, address: str
) -> None:
    """A packet of the client is dropped before the client is added and after it is removed."""
    with service.radius(SECRET, source=address) as device:
        assert not is_answered(service, device)
        for _ in range(2):
            admin.add_client(f"new {address}", address)
            assert is_answered(service, device)
            admin.remove_client(f"new {address}")
            assert not is_answered(service, device)


def test_a_new_secret_applies_to_the_next_packet(service: RunningService, address: str) -> None:
    """After the secret was changed, a packet with the old secret is dropped."""
    api = Api(service)
    api.add_client(f"changed {address}", address)
    with service.radius(SECRET, source=address) as old, service.radius(OTHER_SECRET, source=address) as new:
        assert is_answered(service, old)
        assert not is_answered(service, new)
        api.change_client(f"changed {address}", secret=OTHER_SECRET)
        assert is_answered(service, new)
        assert not is_answered(service, old)


def test_required_signatures_apply_to_the_next_packet(service: RunningService, address: str) -> None:
    """An unsigned packet is dropped while signatures are required."""
    api = Api(service)
    api.add_client(f"signs {address}", address)
    with service.radius(SECRET, source=address) as device:
        for required in ("no", "yes", "no"):
            api.change_client(f"signs {address}", requireMessageAuthenticator=required)
            assert is_answered(service, device, signed=False) is (required == "no")


def test_a_new_domain_of_a_client_applies_to_the_next_login(service: RunningService, address: str) -> None:
    """The next login is decided in the new domain, which does not have the user."""
    api = Api(service)
    api.add_client(f"moves {address}", address)
    domain = service.post("/ad/AddDomain", {**SCOPE, "domainName": f"of {address}"})["domainId"]
    with service.radius(SECRET, source=address) as device:
        assert device.login(USER, PASSWORD) == ACCESS_ACCEPT
        api.change_client(f"moves {address}", domainIds=[domain])
        assert device.login(USER, PASSWORD) == ACCESS_REJECT
    (event,) = service.rows("select domain_id, reason from events order by id desc limit 1")
    assert event == (domain, "unknown user")


def test_a_deleted_device_registers_again_at_the_next_request(service: RunningService) -> None:
    """A deleted device is not listed until its next request. Then it has a new ID and one more registration."""
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


def test_a_user_is_accepted_between_addition_and_removal(service: RunningService) -> None:
    """If a user is removed and a second user of the same name is added, the password of the first user is wrong."""
    with service.radius(SECRET) as device:
        assert device.login("eve", "first") == ACCESS_REJECT
        for password in ("first", "second"):
            service.ok("user", "add", "eve", "--domain", "default", "--password", "-", input=password)
            assert device.login("eve", password) == ACCESS_ACCEPT
            service.ok("user", "remove", "eve", "--domain", "default")
            assert device.login("eve", password) == ACCESS_REJECT
        service.ok("user", "add", "eve", "--domain", "default", "--password", "-", input="third")
        assert device.login("eve", "second") == ACCESS_REJECT


def test_a_change_before_the_start_applies_to_the_first_request(tmp_path: Path) -> None:
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
    """Return the newest event in the log of logins."""
    event: dict[str, Any] = service.post("/ad/GetAuthLog", {**DOMAIN, "pageId": 1, "pageSize": 1})["events"][0]
    return event


def listed(service: RunningService, name: str) -> list[dict[str, Any]]:
    """Return the devices that have this name."""
    chosen = {"filterBy": "NAS_IDENTIFIER", "value": name}
    body = {**DOMAIN, "pageId": 1, "pageSize": 10, "filter": chosen}
    found: list[dict[str, Any]] = service.post("/network_device/ListDevices", body)["network_devices"]
    return found


def is_answered(service: RunningService, device: RadiusClient, *, signed: bool = True) -> bool:
    """Send a login. Return whether its reply has arrived when a later login is answered."""
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
    """Log in repeatedly in another thread until the block ends."""
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

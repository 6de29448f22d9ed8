"""Tests of a client that floods and of a client whose address is spoofed. Other clients are still answered."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.peers.hook import Hook
from tests.peers.second_factor import ONE, PASSWORD, SECRET, provide
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service
from tests.torture.test_provider import metric

PLACES = 64
"""The number of places. Three quarters are for signed requests, and the client that floods gets 24 of them."""
LOGINS = 40
APPROVING = tuple(f"bob{number}" for number in range(LOGINS // 8))
"""Users who approve. Each of them may have a few prompts a minute only."""
FLOODER, QUIET, SPOOFED = "127.0.0.2", "127.0.0.3", "127.0.0.4"

pytestmark = pytest.mark.torture


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Yield the provider. Some users approve, and the others never answer."""
    with Hook() as hook:
        yield hook


@pytest.fixture
def service(tmp_path: Path, hook: Hook) -> Iterator[RunningService]:
    """A service with few places.

    Ann needs no second factor, the users of APPROVING approve, and all others leave the push without an answer.
    """
    settings = {"SALLYPORT_MAX_WAITING_REQUESTS": str(PLACES), "SALLYPORT_REJECT_DELAY_S": "0"}
    with running_service(tmp_path, settings) as service:
        for address in (FLOODER, QUIET, f"{SPOOFED}/31"):
            service.add_client(address, address, SECRET)
        for name in ("ann", *APPROVING, *(f"user{number}" for number in range(2 * PLACES))):
            service.add_user(name, PASSWORD)
        service.set_mode("default", "enforce")
        provide(service, "webhook", timeoutSeconds=60, **hook.fields)
        rule = {"name": "no second factor", "action": "allow", "users": ["ann"]}
        service.post("/ad/AddLoginRule", {**ONE, **rule})
        for name in APPROVING:
            hook.will(name, "approved")
        yield service
        assert "Traceback" not in service.log()


def packet(client: RadiusClient, user: str, number: int, *, signed: bool = True) -> bytes:
    """Return a login at a new station."""
    return client.packet(user, PASSWORD, signed=signed, CALLING_STATION_ID=b"station-%d" % number)


@contextmanager
def flood(service: RunningService, source: str, *, signed: bool) -> Iterator[None]:
    """Send logins of users that never answer, as fast as possible, until the block ends."""
    over, numbers = threading.Event(), count(1000)

    def send() -> None:
        with service.radius(SECRET if signed else "not the secret", source=source) as client:
            while not over.wait(0.001):
                number = next(numbers)
                client.send(packet(client, f"user{number % (2 * PLACES)}", number, signed=signed))

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        try:
            yield
        finally:
            over.set()
            sending.result(timeout=30)


def wait_for_overload(service: RunningService) -> None:
    """Wait until datagrams are dropped because there is no free place."""
    over = threading.Event()
    for _ in range(600):
        if metric(service, "radius_discards_total", listener="auth", reason="overload") > 0:
            return
        over.wait(0.05)
    pytest.fail("the flood is no flood")


def test_others_are_answered(service: RunningService, hook: Hook) -> None:
    """While one client has many users that never answer, all logins of another client are answered, with and without a
    second factor. None of them is dropped."""
    with flood(service, FLOODER, signed=True), service.radius(SECRET, source=QUIET) as quiet:
        wait_for_overload(service)
        quiet.sock.settimeout(30)
        for number in range(LOGINS):
            assert quiet.exchange(packet(quiet, "ann", number))[0] == ACCESS_ACCEPT
        for number, name in enumerate(APPROVING):
            assert quiet.exchange(packet(quiet, name, number))[0] == ACCESS_ACCEPT
        assert metric(service, "radius_inflight_requests", listener="auth") <= PLACES // 2


def test_a_spoofed_address_costs_its_owner_nothing(service: RunningService) -> None:
    """If an attacker sends unsigned guesses from a client's address, the signed logins of the client are still
    answered, and no user is locked out."""
    with flood(service, SPOOFED, signed=False), service.radius(SECRET, source=SPOOFED) as owner:
        owner.sock.settimeout(30)
        for number in range(LOGINS):
            assert owner.exchange(packet(owner, "ann", number))[0] == ACCESS_ACCEPT
    assert service.rows("select name from lockouts") == []


def test_a_lock_out_outlives_a_crash(service: RunningService) -> None:
    """If the service is killed right after the tenth reject, it still refuses the user and the station after the
    restart. The right password of another user at another station is accepted."""
    with service.radius(SECRET, source=QUIET) as client:
        assert client.login("ann", PASSWORD, CALLING_STATION_ID=b"02-00-00-00-00-02") == ACCESS_ACCEPT
        for number in range(10):
            assert client.login("bob", f"wrong {number}", CALLING_STATION_ID=b"02-00-00-00-00-01") == ACCESS_REJECT
        service.kill()
        service.start()
        assert client.login("bob", PASSWORD) == ACCESS_REJECT
        assert client.login("ann", PASSWORD, CALLING_STATION_ID=b"02-00-00-00-00-01") == ACCESS_REJECT
        assert client.login("ann", PASSWORD, CALLING_STATION_ID=b"02-00-00-00-00-02") == ACCESS_ACCEPT
    assert sorted(service.rows("select kind from lockouts")) == [("station",), ("user",)]

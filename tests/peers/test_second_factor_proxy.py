"""Tests with FreeRADIUS between the device and a domain that enforces: a second factor works through a proxy."""

import re
import time
from collections.abc import Iterator

import pytest

from tests.peers.hook import Hook
from tests.peers.programs import needs
from tests.peers.second_factor import (
    ACCEPTED,
    CHALLENGED,
    PASSWORD,
    REJECTED,
    enrol,
    event,
    next_code,
    populate,
    provide,
    state_of,
)
from tests.peers.test_freeradius_proxy import CISCO, HOME_SECRET, MIKROTIK, PROXY, Proxy, freeradius
from tests.running_service import RunningService, running_service

STATION = 'Calling-Station-Id = "02-00-00-00-00-01"'
STATE_OF_NAS = "Proxy-State = 0x6e6173"

pytestmark = [pytest.mark.peer, needs("freeradius", "radclient")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that enforces. The proxy is its only RADIUS client, and each test sets a provider."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        populate(service, "bob", address=PROXY, secret=HOME_SECRET)
        yield service


@pytest.fixture(scope="module")
def proxy(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Yield FreeRADIUS, ready."""
    with freeradius(tmp_path_factory.mktemp("raddb"), service) as proxy:
        yield proxy


def test_a_push_passes_through(service: RunningService, proxy: Proxy) -> None:
    """The proxy keeps the request of the NAS until the approval. Proxy and NAS get their own Proxy-State."""
    with Hook() as hook:
        provide(service, "webhook", **hook.fields)
        hook.will("bob", "approved", after_s=1.5)
        began = time.monotonic()
        output = proxy.login(CISCO, PASSWORD, STATION, STATE_OF_NAS)
        assert time.monotonic() - began >= 1.5
        assert hook.prompts_of("bob") == 1
    assert STATE_OF_NAS in output.partition(ACCEPTED)[2]
    assert own_states(proxy, ACCEPTED)[0] == "6e6173"
    assert event(service, "bob") == ("accept", "accept", "", "local+webhook")


def test_a_denied_push_passes_through(service: RunningService, proxy: Proxy) -> None:
    """If the user denies the push, the NAS gets a reject."""
    with Hook() as hook:
        provide(service, "webhook", **hook.fields)
        hook.will("bob", "denied")
        assert REJECTED in proxy.login(MIKROTIK, PASSWORD, STATION)


def test_a_challenge_passes_through(service: RunningService, proxy: Proxy) -> None:
    """The NAS gets the State and the text, and the service gets the State and the code.

    Both rounds have their Proxy-States.
    """
    provide(service, "totp")
    seed = enrol(service, "bob")
    challenge = proxy.login(CISCO, PASSWORD, STATION, STATE_OF_NAS)
    assert CHALLENGED in challenge
    assert "Enter your code" in challenge
    assert STATE_OF_NAS in challenge.partition(CHALLENGED)[2]
    assert own_states(proxy, CHALLENGED)[0] == "6e6173"
    output = proxy.login(CISCO, next_code(seed), STATION, state_of(challenge), STATE_OF_NAS)
    assert STATE_OF_NAS in output.partition(ACCEPTED)[2]
    assert event(service, "bob") == ("accept", "accept", "", "local+totp")


def own_states(proxy: Proxy, answer: str) -> list[str]:
    """Return the Proxy-States in the service's last answer of a kind to the proxy.

    The first is that of the NAS, and the second that of the proxy.
    """
    states = re.findall(r"Proxy-State = 0x([0-9a-f]+)", proxy.received().rpartition(answer)[2])
    assert len(states) == 2, states
    return states

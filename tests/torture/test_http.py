"""Tests that no peer affects more than its own connection.

After each hostile case the server answers, and in the end it stops.
"""

import gc
import resource
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from sallyport.web.connection import Connection, Exchange
from sallyport.web.server import Tls
from tests.torture.http_cases import OCTETS, PEERS, Octets, send_and_read
from tests.web.sample import make_sample
from tests.web.serving import QUICK, Served, make_certificate, serving

pytestmark = pytest.mark.torture
LIMITS = replace(QUICK, connections=40, idle_s=0.05, linger_s=0.05)
# A machine that is busy elsewhere may stand still for longer than quick limits; the peer would be the one to blame.
PATIENT = replace(LIMITS, handshake_s=3, head_s=3, body_s=3, send_s=3, linger_s=1)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """Return a self-signed certificate and its key."""
    folder: Path = tmp_path_factory.mktemp("tls")
    return make_certificate(folder)


@pytest.fixture(params=["clear", "tls"])
async def served(request: pytest.FixtureRequest, certificate: Tls) -> AsyncIterator[Served]:
    """Yield the sample service, with and without TLS. It has to stop within its limit."""
    async with serving(make_sample().app, certificate if request.param == "tls" else None, LIMITS) as running:
        yield running


@pytest.fixture(params=["clear", "tls"])
async def patient(request: pytest.FixtureRequest, certificate: Tls) -> AsyncIterator[Served]:
    """Yield the same service with longer limits, for peers that must not be cut off."""
    async with serving(make_sample().app, certificate if request.param == "tls" else None, PATIENT) as running:
        yield running


@pytest.mark.parametrize("case", OCTETS.values(), ids=OCTETS.keys())
async def test_hostile_octets(patient: Served, case: Octets) -> None:
    """The first answer has the expected status. The next valid request is answered."""
    answer = await send_and_read(await patient.connect(), case)
    if case.status is not None:
        assert answer.startswith(b"HTTP/1.1 %d " % case.status), answer[:200]
    assert await patient.answers()


@pytest.mark.parametrize("name", PEERS)
async def test_hostile_peers(served: Served, name: str) -> None:
    """The connection of the peer ends. The next valid request is answered."""
    await PEERS[name](served)
    assert await served.answers()


async def test_a_good_client_is_served_among_hostile_ones(patient: Served) -> None:
    """While all hostile cases run at the same time, a valid request is answered."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for peer in PEERS.values():
                nursery.start_soon(peer, patient)
            for _ in range(20):
                assert await patient.answers()
                await trio.sleep(0.02)


async def test_nothing_grows(served: Served) -> None:
    """After several rounds of all hostile cases no connection remains, and the numbers of descriptors and the memory
    have not grown."""

    async def round_of_all() -> None:
        async with trio.open_nursery() as nursery:
            for case in OCTETS.values():
                nursery.start_soon(_quietly, served, case)
        with trio.fail_after(30):
            while _alive():
                await trio.sleep(0.05)

    await round_of_all()
    descriptors, memory = _descriptors(), _resident()
    for _ in range(2):
        await round_of_all()
    assert _descriptors() <= descriptors
    assert _resident() - memory < 32 << 20
    assert await served.answers()


async def _quietly(served: Served, case: Octets) -> None:
    with suppress(trio.BrokenResourceError):  # where it gave way to another connection
        await send_and_read(await served.connect(), case)


def _alive() -> int:
    """Return the connections of the server that are still referenced."""
    gc.collect()
    return sum(isinstance(each, Connection | Exchange) for each in gc.get_objects())


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _resident() -> int:
    """Return the memory of the process in octets."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()

"""Helpers for tests of the second factor: logins of one session over the wire, and their answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count

import pytest
import trio

from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.events.service import Events
from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import SharedSecret, decode_reply
from tests.areas import SECRET, Areas
from tests.areas.login.listen.conftest import NAS, Wire
from tests.areas.login.second.scripted import NAME, Script
from tests.packets import attributes, pap
from tests.waiting import until

PHONE = {
    "CALLING_STATION_ID": b"02-00-00-00-00-01",
    "ACCT_SESSION_ID": b"session 1",
    "NAS_PORT": (7).to_bytes(4),
    "NAS_PORT_ID": b"port 7",
}
"""All attributes that distinguish one login from another."""
SESSION = attributes(**PHONE)
STATION = attributes(CALLING_STATION_ID=b"02-00-00-00-00-01")
OTHER = ("192.0.2.1", 50000)

numbers = count(1)


def a_login(
    body: bytes = SESSION,
    *,
    user: str = "ann",
    password: str = "hello",  # noqa: S107
    signed: bool = True,
) -> bytes:
    """Return a request with a new identifier and a new authenticator."""
    return pap(user, password, body, identifier=next(numbers) & 0xFF, signed=signed)


async def prompted(script: Script, number: int = 1) -> None:
    """Wait until this number of prompts was sent."""
    await until(lambda: len(script.started) >= number)
    assert len(script.started) == number


async def joined(wire: Wire, number: int) -> None:
    """Wait until this number of requests have joined."""
    await until(lambda: wire.areas.sample("sallyport_mfa_joined_retransmits_total", provider=NAME) >= number)


async def answer(wire: Wire, datagram: bytes, source: tuple[str, int] = NAS) -> tuple[int, dict[int, bytes]]:
    """Return the code and the attributes of the next answer. It must be the answer to this request."""
    reply, to = await wire.take()
    assert to == source
    return decode_reply(reply, datagram, SharedSecret(SECRET))


async def exchange(wire: Wire, datagram: bytes, source: tuple[str, int] = NAS) -> tuple[int, dict[int, bytes]]:
    """Send a request. Return the code and the attributes of its answer."""
    wire.put(datagram, source=source)
    return await answer(wire, datagram, source)


async def challenged(
    wire: Wire,
    body: bytes = SESSION,
    *,
    password: str = "hello",  # noqa: S107
    signed: bool = True,
) -> bytes:
    """Log in, and return the State of the challenge."""
    code, first = await exchange(wire, a_login(body, password=password, signed=signed))
    assert code == 11
    return first[STATE]


def typed(code: str, state: bytes, body: bytes = SESSION, *, user: str = "ann", signed: bool = True) -> bytes:
    """Return a request that answers a challenge."""
    return a_login(body + attributes(STATE=state), user=user, password=code, signed=signed)


async def change_before_code(
    wire: Wire, script: Script, change: Callable[[Areas], Awaitable[object]]
) -> tuple[int, str]:
    """Make a change while a challenge is pending, then send the right code.

    Return the code of the answer and the event's reason.
    """
    script.begins = Outcome.CODE
    state = await challenged(wire)
    await change(wire.areas)
    code, _ = await exchange(wire, typed("123456", state))
    return code, (await events(wire.areas))[-1].reason


async def change_before_approval(
    wire: Wire, script: Script, change: Callable[[Areas], Awaitable[object]]
) -> tuple[int, str]:
    """Make a change while a push is pending, then approve the push.

    Return the code of the answer and the event's reason.
    """
    login = a_login()
    wire.put(login)
    await prompted(script)
    await change(wire.areas)
    script.answer(0, Outcome.APPROVED)
    code, _ = await answer(wire, login)
    return code, (await events(wire.areas))[-1].reason


async def events(areas: Areas) -> list[EventRow]:
    """Return the domain's events, oldest first."""
    return (await Events(areas.store).page(EventQuery(areas.domain, limit=1000)))[0][::-1]


async def outcomes(areas: Areas) -> list[tuple[str, str, str, str, str]]:
    """Return the decision, applied decision, decision of enforce mode, reason and factor of each event,
    oldest first."""
    return [
        (each.decision, each.applied_decision, each.would_have_been, each.reason, each.factor)
        for each in await events(areas)
    ]


@pytest.fixture
async def script(areas: Areas) -> Script:
    """Return the script of a provider that sends pushes, in a domain that enforces."""
    script = Script()
    await script.attach(areas)
    return script


@pytest.fixture
async def wire(areas: Areas, script: Script) -> AsyncIterator[Wire]:
    """Yield the exchanges.

    The users ann and bob have the password hello, and 192.0.2.1 and 198.51.100.0/24 are RADIUS clients.
    """
    for user in ("ann", "bob"):
        await areas.add_user(areas.domain, user, b"hello")
    await areas.client(name="nas")
    await areas.client("198.51.100.0/24", name="branches")
    async with trio.open_nursery() as nursery:
        yield Wire(areas, nursery)
        nursery.cancel_scope.cancel()

"""Tests of a device that gave up before users answered: how its timeout is learned and unlearned.

A request arrives in the past, so that no test waits for a timeout.
"""

import time
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from sallyport.areas.clients.client import CHECK
from sallyport.areas.devices.rows import LEARNED_US, UNANSWERED, DeviceQuery, DeviceRow
from sallyport.areas.login.login import Login
from sallyport.areas.login.second.forecast import device_patience
from sallyport.areas.mfa.circuit import Attached, Guarded
from sallyport.areas.mfa.provider import Outcome
from sallyport.base.clock import SECOND
from sallyport.metrics import MfaMetrics
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE
from tests.areas import Areas
from tests.areas.login.listen.conftest import NAS, Wire
from tests.areas.login.listen.second import PHONE, SESSION, a_login, answer, joined, numbers, prompted, script, wire
from tests.areas.login.second.scripted import Script
from tests.packets import attributes

__all__ = ["script", "wire"]


class HalfAMinute(Guarded):
    """A provider whose prompts are answered within half a minute."""

    def p95_s(self) -> float | None:
        """Return 30 seconds."""
        return 30.0


def patience(login: Login, attached: Attached) -> float:
    """Return the patience of the device, if the provider takes half a minute."""
    slow = HalfAMinute(attached.provider.provider, MfaMetrics(CollectorRegistry()))
    return device_patience(login, replace(attached, provider=slow))


def arrive(wire: Wire, datagram: bytes, *ago: float) -> None:
    """Pass a request to the exchange once for each of these times, in seconds before now."""
    now = time.monotonic()
    for seconds in ago:
        wire.auth.receive([(datagram, NAS, wire.areas.clock(), now - seconds)])
    wire.areas.journal.flush()


async def approved(wire: Wire, script: Script, *ago: float, body: bytes = b"") -> int:
    """Send a login of a new session that arrives at these times, and approve its prompt. Return the code of the
    answer."""
    session = attributes(**{**PHONE, "ACCT_SESSION_ID": b"a session %d" % next(numbers)})
    login, number = a_login(session + body), len(script.started)
    arrive(wire, login, *ago)
    await prompted(script, number + 1)
    script.answer(number, Outcome.APPROVED)
    return (await answer(wire, login))[0]


async def only_device(areas: Areas) -> DeviceRow:
    """Return the only device of the inventory."""
    (found,), *_ = await areas.devices.page(DeviceQuery(areas.domain))
    return found


async def timeout_ms(areas: Areas) -> int | None:
    """Return the learned timeout of the only device."""
    return (await only_device(areas)).timeout_ms(areas.clock())


@pytest.fixture
async def impatient(wire: Wire, script: Script) -> Wire:
    """Return a wire whose device has given up after two tries of 3 seconds."""
    wire.areas.patience = patience
    assert await approved(wire, script, 60, 57) == ACCESS_ACCEPT
    assert round((await timeout_ms(wire.areas) or 0) / 100) == 60
    return wire


async def test_a_device_that_still_gives_up_gets_a_challenge(impatient: Wire) -> None:
    """A device that retransmits as before gets a challenge before it gives up."""
    login = a_login()
    arrive(impatient, login, 5, 2)
    assert (await answer(impatient, login))[0] == ACCESS_CHALLENGE


async def test_a_corrected_device_is_waited_for(impatient: Wire, script: Script) -> None:
    """If a device does not retransmit any more when it should, its next logins wait for the user."""
    for _ in range(2):
        assert await approved(impatient, script, 5) == ACCESS_ACCEPT
        assert await timeout_ms(impatient.areas) is None


async def test_a_device_that_shows_no_challenges_is_waited_for(impatient: Wire, script: Script) -> None:
    """A device that is known to show no challenges gets none in place of an approval."""
    areas = impatient.areas
    for _ in range(UNANSWERED):
        login = a_login()
        arrive(impatient, login, 5, 2)
        assert (await answer(impatient, login))[0] == ACCESS_CHALLENGE
    assert (await only_device(areas)).challenge_support(areas.clock()) == "no"
    login = a_login()
    arrive(impatient, login, 5, 2)
    await joined(impatient, UNANSWERED)  # all logins have one prompt
    script.answer(1, Outcome.APPROVED)
    assert (await answer(impatient, login))[0] == ACCESS_ACCEPT


async def test_a_device_that_waits_longer_corrects_its_timeout(impatient: Wire, script: Script) -> None:
    """A retransmission after the learned timeout shows that the device now waits longer."""
    impatient.areas.patience = 60
    assert await approved(impatient, script, 11, 8, 5, 2) == ACCESS_ACCEPT
    assert await timeout_ms(impatient.areas) is None


async def test_a_learned_timeout_ends(impatient: Wire, script: Script) -> None:
    """A month after the device last gave up, its logins wait for the user."""
    impatient.areas.clock.pass_by(LEARNED_US / SECOND + 1)
    assert await approved(impatient, script, 5, 2) == ACCESS_ACCEPT


async def test_after_a_reset_the_device_is_waited_for(impatient: Wire, script: Script) -> None:
    """A reset takes effect at once."""
    device = await only_device(impatient.areas)
    await impatient.areas.devices.reset(impatient.areas.domain, device_ids=[device.id], addresses=None)
    assert await approved(impatient, script, 5, 2) == ACCESS_ACCEPT


@pytest.mark.parametrize("mark", ["NAS_IDENTIFIER", "CONNECT_INFO"])
async def test_a_check_teaches_nothing(wire: Wire, script: Script, mark: str) -> None:
    """A login of `sallyport check` teaches no timeout and counts for no signature, also with another NAS-Identifier."""
    body = attributes(**{"NAS_IDENTIFIER": b"gate", mark: CHECK})
    assert await approved(wire, script, 60, 57, body=body) == ACCESS_ACCEPT
    device = await only_device(wire.areas)
    assert (device.retransmit_ms, device.give_up_ms, device.signed_share) == (None, None, None)


async def test_a_check_teaches_nothing_about_challenges(wire: Wire, script: Script) -> None:
    """Challenges to `sallyport check` do not count, because no user sees them."""
    script.begins = Outcome.CODE
    for _ in range(UNANSWERED):
        login = a_login(SESSION + attributes(CONNECT_INFO=CHECK))
        arrive(wire, login, 0)
        assert (await answer(wire, login))[0] == ACCESS_CHALLENGE
    device = await only_device(wire.areas)
    assert (device.challenges, device.challenge_support(wire.areas.clock())) == (0, "unknown")

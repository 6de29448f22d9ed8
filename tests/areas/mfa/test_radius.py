"""Tests of another RADIUS server as the provider: its replies are verified, and its challenges are passed on."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from sallyport.areas.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import chap_response
from tests.areas.mfa.benches import RadiusBench, radius_bench
from tests.areas.mfa.host import make_host, question
from tests.areas.mfa.radius_server import CODE, NEXT_CODE, STATE_OCTETS
from tests.outgoing.counted import CountedTurns


@pytest.fixture
async def bench() -> AsyncIterator[RadiusBench]:
    """A RADIUS server."""
    async with radius_bench() as bench:
        yield bench


async def verify(bench: RadiusBench, text: str = CODE, handle: str = "") -> Answer:
    """Verify a code."""
    return await bench.make().verify(question(), Code(text), handle)


async def test_an_accept_approves_and_a_reject_is_a_wrong_code(bench: RadiusBench) -> None:
    assert (await verify(bench)).outcome is Outcome.APPROVED
    assert (await verify(bench, "000000")).outcome is Outcome.WRONG_CODE


async def test_a_challenge_is_passed_on(bench: RadiusBench) -> None:
    """The user sees the text of a challenge.

    The State of the challenge is the handle, and is sent with the next code.
    """
    bench.server.challenges = True
    answer = await verify(bench)
    assert answer == Answer(Outcome.CODE, handle=STATE_OCTETS.hex(), text="And the next one")
    assert (await verify(bench, CODE, answer.handle)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, NEXT_CODE, answer.handle)).outcome is Outcome.APPROVED


async def test_replies_are_read_in_batches(bench: RadiusBench) -> None:
    """If a thousand replies arrive at the same time, a few are read at a time, so that other tasks can run in
    between."""
    bench.host.http.egress.turns = turns = CountedTurns(1)
    await verify(bench)
    assert turns.taken == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [pytest.param(CODE, Outcome.APPROVED, id="right"), pytest.param("000000", Outcome.WRONG_CODE, id="wrong")],
)
async def test_a_chap_response_is_forwarded(bench: RadiusBench, text: str, outcome: Outcome) -> None:
    challenge = bytes(range(16))
    code = Code(None, response=chap_response(9, text.encode(), challenge), challenge=challenge)
    assert (await bench.make().verify(question(), code, "")).outcome is outcome


async def test_a_lost_packet_is_retransmitted(bench: RadiusBench) -> None:
    """A request without a reply is sent three times in total."""
    bench.server.drops = 2
    assert (await verify(bench)).outcome is Outcome.APPROVED
    assert bench.requests == 3
    bench.server.drops = 3
    with pytest.raises(ProviderError, match="no answer"):
        await verify(bench)
    assert bench.requests == 6


async def test_a_reply_without_message_authenticator_is_refused(bench: RadiusBench) -> None:
    """A reply without Message-Authenticator is refused, even if its Response Authenticator is valid."""
    bench.server.signed = False
    with pytest.raises(ProviderError, match="without Message-Authenticator"):
        await verify(bench)


async def test_a_wrong_secret_is_reported(bench: RadiusBench) -> None:
    """Invalid replies are ignored. The error refers to the secret but does not contain it."""
    bench.server.secret = SharedSecret(b"another secret")
    with pytest.raises(ProviderError, match="check the secret"):
        await verify(bench)


async def test_a_closed_port_is_reported_at_once(bench: RadiusBench) -> None:
    bench.fields = {**bench.fields, "port": 9}
    with pytest.raises(ProviderError, match="no RADIUS server answers at this address"):
        await verify(bench)


async def test_a_server_outside_egress_is_not_sent_a_packet(bench: RadiusBench) -> None:
    bench.host = make_host(http=HttpFactory(egress=[ip_network("192.0.2.0/24")]))
    with pytest.raises(ProviderError, match="address not allowed"):
        await verify(bench)
    bench.host = make_host(http=HttpFactory())
    bench.fields = {**bench.fields, "host": "169.254.169.254"}
    with pytest.raises(ProviderError, match="address not allowed"):
        await verify(bench)
    assert bench.requests == 0


async def test_a_code_too_long_for_radius_is_wrong(bench: RadiusBench) -> None:
    assert (await verify(bench, "1" * 129)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, CODE, "ff" * 300)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, CODE, "no hex")).outcome is Outcome.WRONG_CODE
    assert bench.requests == 0


async def test_a_code_that_is_no_utf_8_is_sent_as_it_is(bench: RadiusBench) -> None:
    """A device may send a password in another character set. The server checks the octets."""
    typed = b"\xe9".decode(errors="surrogateescape")
    assert (await verify(bench, typed)).outcome is Outcome.WRONG_CODE
    assert bench.requests == 1

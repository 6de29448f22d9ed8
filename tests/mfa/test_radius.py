"""Another RADIUS server: its answers must be proven, its challenges are passed through."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from sallyport.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import chap_response
from tests.mfa.benches import RadiusBench, radius_bench
from tests.mfa.host import make_host, question
from tests.mfa.radius_server import CODE, NEXT_CODE, STATE_OCTETS
from tests.outgoing.counted import CountedTurns


@pytest.fixture
async def bench() -> AsyncIterator[RadiusBench]:
    """A RADIUS server."""
    async with radius_bench() as bench:
        yield bench


async def verify(bench: RadiusBench, text: str = CODE, handle: str = "") -> Answer:
    """Ask with a code."""
    return await bench.make().verify(question(), Code(text), handle)


async def test_codes(bench: RadiusBench) -> None:
    """Accept is approved, Reject is a wrong code."""
    assert (await verify(bench)).outcome is Outcome.APPROVED
    assert (await verify(bench, "000000")).outcome is Outcome.WRONG_CODE


async def test_challenge(bench: RadiusBench) -> None:
    """A challenge is passed through with its text; its State is the handle and goes back with the next code."""
    bench.server.challenges = True
    answer = await verify(bench)
    assert answer == Answer(Outcome.CODE, handle=STATE_OCTETS.hex(), text="And the next one")
    assert (await verify(bench, CODE, answer.handle)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, NEXT_CODE, answer.handle)).outcome is Outcome.APPROVED


async def test_answers_are_read_in_turns(bench: RadiusBench) -> None:
    """Datagrams for a thousand logins in the same instant are read a few at a time."""
    bench.host.http.egress.turns = turns = CountedTurns(1)
    await verify(bench)
    assert turns.taken == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [pytest.param(CODE, Outcome.APPROVED, id="right"), pytest.param("000000", Outcome.WRONG_CODE, id="wrong")],
)
async def test_chap(bench: RadiusBench, text: str, outcome: Outcome) -> None:
    """A CHAP response is forwarded as it came."""
    challenge = bytes(range(16))
    code = Code(None, response=chap_response(9, text.encode(), challenge), challenge=challenge)
    assert (await bench.make().verify(question(), code, "")).outcome is outcome


async def test_lost_packets(bench: RadiusBench) -> None:
    """A lost packet is sent again, three times in all."""
    bench.server.drops = 2
    assert (await verify(bench)).outcome is Outcome.APPROVED
    assert bench.requests == 3
    bench.server.drops = 3
    with pytest.raises(ProviderError, match="no answer"):
        await verify(bench)
    assert bench.requests == 6


async def test_unsigned_answers_are_refused(bench: RadiusBench) -> None:
    """An Accept whose Response Authenticator holds, but without Message-Authenticator, is not believed."""
    bench.server.signed = False
    with pytest.raises(ProviderError, match="without Message-Authenticator"):
        await verify(bench)


async def test_another_secret(bench: RadiusBench) -> None:
    """Answers that do not hold are waited past; in the end the secret is pointed at, and not shown."""
    bench.server.secret = SharedSecret(b"another secret")
    with pytest.raises(ProviderError, match="check the secret"):
        await verify(bench)


async def test_nobody_listens(bench: RadiusBench) -> None:
    """A closed port is reported at once."""
    bench.fields = {**bench.fields, "port": 9}
    with pytest.raises(ProviderError, match="no RADIUS server answers there"):
        await verify(bench)


async def test_egress_holds(bench: RadiusBench) -> None:
    """A server outside the networks is not sent anything."""
    bench.host = make_host(http=HttpFactory(egress=[ip_network("192.0.2.0/24")]))
    with pytest.raises(ProviderError, match="address not allowed"):
        await verify(bench)
    bench.host = make_host(http=HttpFactory())
    bench.fields = {**bench.fields, "host": "169.254.169.254"}
    with pytest.raises(ProviderError, match="address not allowed"):
        await verify(bench)
    assert bench.requests == 0


async def test_too_long_for_radius(bench: RadiusBench) -> None:
    """A code that RADIUS cannot carry is wrong."""
    assert (await verify(bench, "1" * 129)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, CODE, "ff" * 300)).outcome is Outcome.WRONG_CODE
    assert (await verify(bench, CODE, "no hex")).outcome is Outcome.WRONG_CODE
    assert bench.requests == 0

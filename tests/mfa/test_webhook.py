"""The customer's own hook."""

from collections.abc import AsyncIterator

import pytest

from sallyport.base.clock import iso
from sallyport.mfa.contract import Behaviour
from sallyport.mfa.provider import Enrolment, Outcome, ProviderError
from sallyport.mfa.webhook import signature
from tests.mfa.benches import HttpBench, hook_bench
from tests.mfa.hook_server import HookServer
from tests.mfa.host import USER, question

Bench = HttpBench[HookServer]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A hook."""
    async with hook_bench() as bench:
        yield bench


def test_signature() -> None:
    """Hex HMAC-SHA256 over timestamp, a dot and the body; computed with OpenSSL."""
    expected = "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
    assert signature(b"key", "1700000000", b"{}") == expected


async def test_what_is_told(bench: Bench) -> None:
    """The hook hears who logs in where, until when."""
    asked = question()
    provider = bench.make()
    answer = await provider.start(asked)
    assert answer.outcome is Outcome.WAITING
    assert answer.again_s == 2  # the server's Retry-After
    assert bench.server.challenges[asked.challenge_id] == {
        "type": "challenge",
        "challenge_id": asked.challenge_id,
        "user": USER,
        "domain": "corp",
        "device": "switch-7",
        "source": "192.0.2.7",
        "expires_at": iso(asked.expires_at),
    }
    await provider.aclose()


@pytest.mark.parametrize(
    ("behaviour", "outcome"), [(Behaviour.APPROVE, Outcome.APPROVED), (Behaviour.DENY, Outcome.DENIED)]
)
async def test_an_answer_at_once(bench: Bench, behaviour: Behaviour, outcome: Outcome) -> None:
    """A hook may answer without a poll_url."""
    bench.server.immediately = True
    bench.behave(behaviour)
    provider = bench.make()
    assert (await provider.start(question())).outcome is outcome
    await provider.aclose()


async def test_waiting_is_no_first_answer(bench: Bench) -> None:
    """`waiting` without a poll_url leads nowhere: a failure."""
    bench.server.immediately = True
    bench.behave(Behaviour.WAIT)
    provider = bench.make()
    with pytest.raises(ProviderError, match="none of approved, denied, unknown_user"):
        await provider.start(question())
    await provider.aclose()


@pytest.mark.parametrize(
    "poll_url",
    ["", "https://evil.example/", "http://127.0.0.1:1/", "http://localhost/", "//evil.example/x", "file:///etc/passwd",
     "http://user:pw@127.0.0.1/", "http://[", "http://127.0.0.1/" + "x" * 3000, "javascript:alert(1)"],
)  # fmt: skip
async def test_poll_url_of_another_origin(bench: Bench, poll_url: str) -> None:
    """A poll_url elsewhere is refused when it comes, and when it is in a handle; nothing is asked there."""
    bench.server.poll_url = poll_url
    provider = bench.make()
    with pytest.raises(ProviderError, match="poll_url"):
        await provider.start(question())
    with pytest.raises(ProviderError, match="poll_url"):
        await provider.poll(poll_url)
    assert bench.requests == 1
    await provider.aclose()


async def test_a_hook_without_enrolment(bench: Bench) -> None:
    """A hook that does not know the question leaves it open; that is no failure that would open the circuit."""
    bench.server.knows_enrolment = False
    provider = bench.make()
    assert await provider.enrolled(USER) is Enrolment.UNKNOWN
    await provider.aclose()

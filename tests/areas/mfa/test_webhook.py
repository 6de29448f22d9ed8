"""Tests of the webhook of a customer."""

from collections.abc import AsyncIterator

import pytest

from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.provider import Enrolment, Outcome, ProviderError
from sallyport.areas.mfa.webhook import signature
from sallyport.base.clock import iso
from tests.areas.mfa.benches import HttpBench, hook_bench
from tests.areas.mfa.hook_server import HookServer
from tests.areas.mfa.host import USER, question

Bench = HttpBench[HookServer]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A hook."""
    async with hook_bench() as bench:
        yield bench


def test_the_signature_is_an_hmac() -> None:
    """The signature is the hex HMAC-SHA256 of the timestamp, a dot and the body. OpenSSL computes the same value."""
    expected = "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
    assert signature(b"key", "1700000000", b"{}") == expected


async def test_a_request_describes_the_login(bench: Bench) -> None:
    """A request contains the challenge, the user, the domain, the device, its address, the station and the expiry."""
    asked = question()
    provider = bench.make()
    answer = await provider.start(asked)
    assert answer.outcome is Outcome.WAITING
    assert answer.again_s == 2  # from the Retry-After of the server
    assert bench.server.challenges[asked.challenge_id] == {
        "type": "challenge",
        "challenge_id": asked.challenge_id,
        "user": USER,
        "domain": "corp",
        "device": "switch-7",
        "source": "192.0.2.7",
        "station": asked.station,
        "expires_at": iso(asked.expires_at),
    }
    await provider.aclose()


@pytest.mark.parametrize(
    ("behaviour", "outcome"), [(Behaviour.APPROVE, Outcome.APPROVED), (Behaviour.DENY, Outcome.DENIED)]
)
async def test_an_immediate_answer_needs_no_poll_url(bench: Bench, behaviour: Behaviour, outcome: Outcome) -> None:
    bench.server.immediately = True
    bench.behave(behaviour)
    provider = bench.make()
    assert (await provider.start(question())).outcome is outcome
    await provider.aclose()


async def test_waiting_without_a_poll_url_is_a_failure(bench: Bench) -> None:
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
async def test_a_poll_url_of_another_origin_is_refused(bench: Bench, poll_url: str) -> None:
    """A poll_url to another origin is refused in an answer and in a handle, and no request is sent there."""
    bench.server.poll_url = poll_url
    provider = bench.make()
    with pytest.raises(ProviderError, match="poll_url"):
        await provider.start(question())
    with pytest.raises(ProviderError, match="poll_url"):
        await provider.poll(poll_url)
    assert bench.requests == 1
    await provider.aclose()


async def test_a_webhook_need_not_know_enrolments(bench: Bench) -> None:
    """If the hook does not support enrolment requests, an enrolment is unknown.

    This is no failure that could open the circuit.
    """
    bench.server.knows_enrolment = False
    provider = bench.make()
    assert await provider.enrolled(USER) is Enrolment.UNKNOWN
    await provider.aclose()

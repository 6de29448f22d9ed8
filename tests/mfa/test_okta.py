"""Okta: push first, a code otherwise."""

from collections.abc import AsyncIterator

import pytest

from sallyport.mfa.contract import Behaviour
from sallyport.mfa.provider import Code, Enrolment, Outcome, ProviderError
from tests.mfa.benches import HttpBench, okta_bench
from tests.mfa.host import USER, question, takes_for_nobody
from tests.mfa.okta_server import CODE, PENDING, PUSH, SMS, TOTP, OktaServer

Bench = HttpBench[OktaServer]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """An Okta server."""
    async with okta_bench() as bench:
        yield bench


@pytest.mark.parametrize(
    ("factors", "outcome", "enrolment"),
    [
        ([PUSH, TOTP], Outcome.WAITING, Enrolment.ENROLLED),
        ([TOTP, PUSH], Outcome.WAITING, Enrolment.ENROLLED),
        ([PUSH], Outcome.WAITING, Enrolment.ENROLLED),
        ([TOTP, PENDING], Outcome.CODE, Enrolment.ENROLLED),
        ([PENDING, SMS], Outcome.NOT_ENROLLED, Enrolment.NOT_ENROLLED),
        ([], Outcome.NOT_ENROLLED, Enrolment.NOT_ENROLLED),
    ],
)
async def test_factors(bench: Bench, factors: list[dict[str, str]], outcome: Outcome, enrolment: Enrolment) -> None:
    """Active push factors are used first, then codes; pending factors and other kinds do not count."""
    bench.server.factors = factors
    provider = bench.make()
    assert await provider.enrolled(USER) is enrolment
    assert (await provider.start(question())).outcome is outcome
    await provider.aclose()


async def test_code_beside_push(bench: Bench) -> None:
    """A user with both may type a code behind the password; no push is sent for it."""
    provider = bench.make()
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.APPROVED
    assert (await provider.verify(question(), Code("000000"), "")).outcome is Outcome.WRONG_CODE
    assert bench.prompts == 0
    bench.server.factors = [PUSH]
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.NOT_ENROLLED
    await provider.aclose()


@pytest.mark.parametrize("status", ["LOCKED_OUT", "SUSPENDED", "DEPROVISIONED"])
async def test_shut_out(bench: Bench, status: str) -> None:
    """A locked, suspended or deactivated user of Okta is denied, without a prompt."""
    bench.server.status = status
    provider = bench.make()
    assert (await provider.start(question())).outcome is Outcome.DENIED
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.DENIED
    assert bench.prompts == 0
    await provider.aclose()


async def test_the_tokens_faults_are_not_the_users(bench: Bench) -> None:
    """A token without permission, or a wrong one, is a failure of the provider and not a wrong code."""
    bench.server.token_allowed = False
    provider = bench.make()
    with pytest.raises(ProviderError, match="refuses the API token"):
        await provider.verify(question(), Code(CODE), "")
    await provider.aclose()
    bench.fields = {**bench.fields, "apiToken": "00wrong"}
    provider = bench.make()
    with pytest.raises(ProviderError, match="refuses the API token") as refused:
        await provider.start(question())
    assert "00wrong" not in str(refused.value)
    await provider.aclose()


async def test_cancel_takes_the_push_back(bench: Bench) -> None:
    """The link that came with the push is used for it."""
    bench.behave(Behaviour.WAIT)
    provider = bench.make()
    await provider.cancel((await provider.start(question())).handle)
    assert len(bench.server.cancelled) == 1
    await provider.aclose()


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:{port}", "http://x@127.0.0.1:1", "//["])
async def test_links_elsewhere_are_not_followed(bench: Bench, origin: str) -> None:
    """A link to poll at another origin is a failure: the token would go there."""
    bench.server.poll_origin = origin.format(port=bench.server.web.port)
    provider = bench.make()
    with pytest.raises(ProviderError, match="link"):
        await provider.start(question())
    await provider.aclose()


@pytest.mark.parametrize("user", ["", ".", "..", "../groups", "a/b?c=d#e", "%2e%2e"])
async def test_names_stay_in_their_place(bench: Bench, user: str) -> None:
    """A name cannot lead to another path of the API."""
    provider = bench.make()
    assert await provider.enrolled(user) is Enrolment.NOT_ENROLLED
    await provider.aclose()


async def test_names_that_are_none(bench: Bench) -> None:
    """An attacker who tries many names must not look like an outage, which fallbackAction may allow."""
    provider = bench.make()
    await takes_for_nobody(provider, " ", "\t")
    assert bench.prompts == 0
    await provider.aclose()


@pytest.mark.parametrize("handle", ["", "{}", "[]", "x", '{"poll": 7}', '{"poll": "https://evil.example/"}'])
async def test_foreign_handles(bench: Bench, handle: str) -> None:
    """A handle that the provider has not made is a failure."""
    provider = bench.make()
    with pytest.raises(ProviderError):
        await provider.poll(handle)
    await provider.aclose()

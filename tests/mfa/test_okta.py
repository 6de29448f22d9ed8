"""Tests of Okta: it sends a push if this is possible, and otherwise asks for a code."""

from collections.abc import AsyncIterator

import pytest

from sallyport.mfa.contract import Behaviour
from sallyport.mfa.provider import Code, Enrolment, Outcome, ProviderError
from tests.mfa.benches import HttpBench, okta_bench
from tests.mfa.host import USER, assert_unknown, question
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
async def test_push_factors_are_used_before_codes(
    bench: Bench, factors: list[dict[str, str]], outcome: Outcome, enrolment: Enrolment
) -> None:
    """Pending factors are not used, and neither are factors of other kinds."""
    bench.server.factors = factors
    provider = bench.make()
    assert await provider.enrolled(USER) is enrolment
    assert (await provider.start(question())).outcome is outcome
    await provider.aclose()


async def test_a_user_with_push_may_append_a_code(bench: Bench) -> None:
    """If the code is appended to the password, no push is sent."""
    provider = bench.make()
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.APPROVED
    assert (await provider.verify(question(), Code("000000"), "")).outcome is Outcome.WRONG_CODE
    assert bench.prompts == 0
    bench.server.factors = [PUSH]
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.NOT_ENROLLED
    await provider.aclose()


@pytest.mark.parametrize("status", ["LOCKED_OUT", "SUSPENDED", "DEPROVISIONED"])
async def test_a_blocked_okta_user_is_denied(bench: Bench, status: str) -> None:
    """A user that is locked, suspended or deactivated at Okta is denied without a prompt."""
    bench.server.status = status
    provider = bench.make()
    assert (await provider.start(question())).outcome is Outcome.DENIED
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.DENIED
    assert bench.prompts == 0
    await provider.aclose()


async def test_a_faulty_api_token_is_a_failure(bench: Bench) -> None:
    """A token that is wrong or has no permission is a failure of the provider. It is not reported as a wrong code."""
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


async def test_cancel_withdraws_the_push(bench: Bench) -> None:
    """To cancel a push, the provider uses the cancel link of the push."""
    bench.behave(Behaviour.WAIT)
    provider = bench.make()
    await provider.cancel((await provider.start(question())).handle)
    assert len(bench.server.cancelled) == 1
    await provider.aclose()


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:{port}", "http://x@127.0.0.1:1", "//["])
async def test_a_link_to_another_origin_is_not_followed(bench: Bench, origin: str) -> None:
    """A poll link to another origin is a failure, because the token would be sent there."""
    bench.server.poll_origin = origin.format(port=bench.server.web.port)
    provider = bench.make()
    with pytest.raises(ProviderError, match="link"):
        await provider.start(question())
    await provider.aclose()


@pytest.mark.parametrize("user", ["", ".", "..", "../groups", "a/b?c=d#e", "%2e%2e"])
async def test_user_names_are_escaped_in_paths(bench: Bench, user: str) -> None:
    """A user name cannot change the path of a request."""
    provider = bench.make()
    assert await provider.enrolled(user) is Enrolment.NOT_ENROLLED
    await provider.aclose()


async def test_invalid_user_names_are_not_enrolled(bench: Bench) -> None:
    """Invalid names do not count as failures.

    Otherwise an attacker who tries many of them could cause an outage, in which the fallbackAction may allow logins.
    """
    provider = bench.make()
    await assert_unknown(provider, " ", "\t")
    assert bench.prompts == 0
    await provider.aclose()


@pytest.mark.parametrize("handle", ["", "{}", "[]", "x", '{"poll": 7}', '{"poll": "https://evil.example/"}'])
async def test_a_foreign_handle_is_a_failure(bench: Bench, handle: str) -> None:
    """A handle that the provider did not create is a failure."""
    provider = bench.make()
    with pytest.raises(ProviderError):
        await provider.poll(handle)
    await provider.aclose()

"""Tests of Okta: it sends a push if this is possible, and otherwise asks for a code."""

import json
from collections.abc import AsyncIterator

import pytest

from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.okta import _identifier
from sallyport.areas.mfa.provider import Code, Enrolment, Outcome, ProviderError
from tests.areas.mfa.benches import HttpBench, okta_bench
from tests.areas.mfa.host import USER, assert_unknown, question
from tests.areas.mfa.okta_server import (
    CODE,
    PENDING,
    PUSH,
    SECOND_CODE,
    SECOND_PUSH,
    SECOND_TOTP,
    SMS,
    TOTP,
    OktaServer,
)

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


# --- several factors of a type --------------------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [[TOTP, SECOND_TOTP], [SECOND_TOTP, TOTP]], ids=["first", "last"])
@pytest.mark.parametrize("code", [CODE, SECOND_CODE])
async def test_the_code_of_any_app_is_right(bench: Bench, factors: list[dict[str, str]], code: str) -> None:
    """If a user has the apps of two vendors, a code of each app is right, and any other code is wrong."""
    bench.server.factors = factors
    provider = bench.make()
    assert (await provider.verify(question(), Code(code), "")).outcome is Outcome.APPROVED
    assert (await provider.verify(question(), Code("000000"), "")).outcome is Outcome.WRONG_CODE
    await provider.aclose()


async def test_the_app_that_was_used_last_is_asked_first(bench: Bench) -> None:
    """Okta counts each wrong code. So the next code is checked with the app that has accepted the last one."""
    bench.server.factors = [TOTP, SECOND_TOTP]
    provider = bench.make()
    for _ in range(2):
        assert (await provider.verify(question(), Code(SECOND_CODE), "")).outcome is Outcome.APPROVED
    assert bench.server.tried == [TOTP["id"], SECOND_TOTP["id"], SECOND_TOTP["id"]]
    await provider.aclose()


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("SUCCESS", "WAITING", Outcome.APPROVED), ("WAITING", "SUCCESS", Outcome.APPROVED),
        ("TIMEOUT", "SUCCESS", Outcome.APPROVED), ("WAITING", "WAITING", Outcome.WAITING),
        ("TIMEOUT", "WAITING", Outcome.WAITING), ("WAITING", "TIMEOUT", Outcome.WAITING),
        ("TIMEOUT", "TIMEOUT", Outcome.UNANSWERED), ("REJECTED", "WAITING", Outcome.NOT_ME),
        ("WAITING", "REJECTED", Outcome.NOT_ME), ("SUCCESS", "REJECTED", Outcome.NOT_ME),
        ("CANCELLED", "WAITING", Outcome.WAITING), ("CANCELLED", "SUCCESS", Outcome.APPROVED),
        ("CANCELLED", "TIMEOUT", Outcome.WAITING),
    ],
)  # fmt: skip
async def test_all_phones_get_the_push(bench: Bench, first: str, second: str, outcome: Outcome) -> None:
    """The push goes to all phones, and the first answer counts. Then the other prompts are cancelled."""
    bench.behave(Behaviour.WAIT)
    bench.server.factors = [PUSH, SECOND_PUSH]
    provider = bench.make()
    answer = await provider.start(question())
    assert (answer.outcome, bench.prompts) == (Outcome.WAITING, 2)
    bench.server.results = {PUSH["id"]: first, SECOND_PUSH["id"]: second}
    answer = await provider.poll(answer.handle)
    assert answer.outcome is outcome
    assert len(bench.server.cancelled) == (0 if outcome is Outcome.WAITING else 2)
    await provider.aclose()


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({}, ""),
        ({PUSH["id"]: 7}, "Choose 7 in Okta Verify, then press Enter"),
        ({PUSH["id"]: 72, SECOND_PUSH["id"]: 13}, "Choose 72 or 13 in Okta Verify, then press Enter"),
        ({PUSH["id"]: 0, SECOND_PUSH["id"]: 999}, "Choose 0 or 999 in Okta Verify, then press Enter"),
        ({PUSH["id"]: -1, SECOND_PUSH["id"]: 1000}, ""),
        ({PUSH["id"]: "72\n", SECOND_PUSH["id"]: True}, ""),
    ],
)
async def test_a_number_to_choose_on_the_phone(bench: Bench, numbers: dict[str, object], text: str) -> None:
    """If Okta asks for a number challenge, the text for the user names the number of each phone."""
    bench.behave(Behaviour.WAIT)
    bench.server.factors = [PUSH, SECOND_PUSH]
    provider = bench.make()
    answer = await provider.start(question())
    assert answer.text == ""
    bench.server.numbers = numbers
    assert (await provider.poll(answer.handle)).text == (await provider.start(question("b" * 32))).text == text
    await provider.aclose()


async def test_a_phone_that_cannot_be_reached_does_not_end_the_login(bench: Bench) -> None:
    """If Okta cannot send the push to one phone, the other phone decides."""
    bench.behave(Behaviour.WAIT)
    bench.server.factors, bench.server.results = [PUSH, SECOND_PUSH], {PUSH["id"]: "FAILED"}
    provider = bench.make()
    answer = await provider.start(question())
    bench.server.results[SECOND_PUSH["id"]] = "SUCCESS"
    assert (await provider.poll(answer.handle)).outcome is Outcome.APPROVED
    await provider.aclose()


async def test_a_login_fails_if_no_phone_can_be_reached(bench: Bench) -> None:
    """It does not wait for pushes that were not sent, and does not count as unanswered by the user."""
    bench.server.factors = [PUSH, SECOND_PUSH]
    bench.server.results = dict.fromkeys((PUSH["id"], SECOND_PUSH["id"]), "FAILED")
    provider = bench.make()
    with pytest.raises(ProviderError, match="HTTP 500"):
        await provider.start(question())
    await provider.aclose()


async def test_polling_fails_if_no_phone_can_be_polled(bench: Bench) -> None:
    bench.behave(Behaviour.WAIT)
    bench.server.factors = [PUSH, SECOND_PUSH]
    provider = bench.make()
    answer = await provider.start(question())
    bench.server.results = {PUSH["id"]: "CANCELLED", SECOND_PUSH["id"]: "ERROR"}
    with pytest.raises(ProviderError, match="factorResult"):
        await provider.poll(answer.handle)
    await provider.aclose()


async def test_a_push_of_an_older_version_is_polled(bench: Bench) -> None:
    """The handle of a push that was sent before an upgrade has the links of one phone."""
    bench.behave(Behaviour.WAIT)
    provider = bench.make()
    (links,) = json.loads((await provider.start(question())).handle)
    assert (await provider.poll(json.dumps(links))).outcome is Outcome.WAITING
    await provider.aclose()


@pytest.mark.parametrize("text", ["00u1", "a-b_C9", "x" * 100])
def test_an_id_of_okta(text: str) -> None:
    """Letters, digits, hyphens and underscores can be a part of a path."""
    assert _identifier(text) == text


@pytest.mark.parametrize("text", ["", "a/b", "..", "a?b", "a%2fb", "\u00e4", "\u0661", "x" * 101])
def test_an_id_that_would_change_the_path(text: str) -> None:
    """An id from an answer of a server is never sent back as another path."""
    with pytest.raises(ProviderError, match="no usable id"):
        _identifier(text)

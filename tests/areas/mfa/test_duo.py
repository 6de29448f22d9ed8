"""Tests of Duo: signatures as Duo checks them, and the outcome of each response of Duo."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import duo_client
import httpx
import pytest
import trio

from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.duo import canonical_parameters, sign
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas.mfa.benches import HttpBench, duo_bench
from tests.areas.mfa.duo_server import CODE, IKEY, SKEY, DuoServer
from tests.areas.mfa.host import USER, assert_unknown, make_host, question

Bench = HttpBench[DuoServer]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A Duo server."""
    async with duo_bench() as bench:
        yield bench


# --- the server checks signatures as Duo does, which the vendor's client shows -------------------------------


@pytest.mark.parametrize("version", [2, 5])
async def test_the_vendors_client_is_accepted(bench: Bench, version: int) -> None:
    """The vendor's client duo_client succeeds with every operation that the provider uses, with both versions of the
    signature."""
    port = bench.server.web.port
    client = duo_client.Auth(IKEY, SKEY, "127.0.0.1", ca_certs="HTTP", port=port, sig_version=version)

    def use() -> list[object]:
        client.check()
        pushed = client.auth("push", username=USER, device="auto", async_txn=True)
        return [
            client.preauth(username=USER)["result"],
            client.auth_status(pushed["txid"])["success"],
            client.auth("passcode", username=USER, passcode=CODE)["result"],
            client.auth("passcode", username=USER, passcode="000 ~é")["result"],
        ]

    assert await trio.to_thread.run_sync(use) == ["auth", True, "allow", "deny"]


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize(
    ("ikey", "skey"), [pytest.param(IKEY, SKEY[::-1], id="skey"), pytest.param(IKEY[::-1], SKEY, id="ikey")]
)
async def test_a_wrong_key_is_refused(bench: Bench, version: int, ikey: str, skey: str) -> None:
    """The vendor's client with another skey or ikey gets 401."""
    port = bench.server.web.port
    client = duo_client.Auth(ikey, skey, "127.0.0.1", ca_certs="HTTP", port=port, sig_version=version)
    with pytest.raises(RuntimeError, match="401"):
        await trio.to_thread.run_sync(client.check)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"username": USER}, {"b": "2", "a": "1", "a ": "0", "B": "~-._*"}, {"é": "漢 字/&=%+", "": "x"}],
)
def test_the_signature_equals_that_of_the_vendors_client(parameters: dict[str, str]) -> None:
    """The canonical parameters of the provider and of the vendor's client are equal too."""
    date = "Tue, 21 Aug 2012 17:29:18 -0000"
    lists = {name: [value] for name, value in parameters.items()}
    assert canonical_parameters(parameters) == duo_client.client.canon_params(lists)
    theirs = duo_client.client.sign(IKEY, SKEY, "post", "API.example.com", "/auth/v2/auth", date, 2, lists)
    ours = sign(SKEY.encode(), date, "post", "API.example.com", "/auth/v2/auth", parameters)
    assert duo_client.client.base64.b64decode(theirs.removeprefix("Basic ")) == f"{IKEY}:{ours}".encode()


# --- the provider ---------------------------------------------------------------------------------------------


async def test_a_push_is_approved(bench: Bench) -> None:
    """A push shows the device and the user of the login. The provider polls for the answer with the txid."""
    provider = bench.make()
    answer = await provider.start(question())
    assert (answer.outcome, answer.handle, answer.again_s) == (Outcome.WAITING, "tx-1", 0)
    pushed = bench.server.calls[-1].parameters
    assert pushed["pushinfo"] == "domain=corp&device=switch-7&station=00-11-22-33-44-55"
    assert (pushed["username"], pushed["display_username"], pushed["ipaddr"]) == (USER, USER, "192.0.2.7")
    assert (await provider.poll("tx-1")).outcome is Outcome.APPROVED
    await provider.aclose()


async def test_a_poll_waits_for_duo(bench: Bench) -> None:
    """The long poll is answered when the user answers. After a response that came at once, the next poll is delayed."""
    bench.behave(Behaviour.WAIT)
    provider = bench.make()
    handle = (await provider.start(question())).handle
    with trio.fail_after(3):
        async with trio.open_nursery() as nursery:

            async def approve() -> None:
                await trio.sleep(0.1)
                bench.behave(Behaviour.APPROVE)

            nursery.start_soon(approve)
            assert (await provider.poll(handle)).outcome is Outcome.APPROVED
    bench.behave(Behaviour.UNKNOWN_USER)  # auth_status answers `waiting` at once
    assert (await provider.poll(handle)).again_s == 1
    await provider.aclose()


@pytest.mark.parametrize(
    ("result", "outcome", "enrolment"),
    [
        ("allow", Outcome.APPROVED, Enrolment.ENROLLED),
        ("deny", Outcome.DENIED, Enrolment.UNKNOWN),
        ("enroll", Outcome.NOT_ENROLLED, Enrolment.NOT_ENROLLED),
    ],
)
async def test_preauth_may_decide_the_login(bench: Bench, result: str, outcome: Outcome, enrolment: Enrolment) -> None:
    """If a user is bypassed, locked out or not enrolled, this is known without a prompt."""
    bench.server.result = result
    provider = bench.make()
    assert (await provider.start(question())).outcome is outcome
    assert await provider.enrolled(USER) is enrolment
    assert bench.prompts == 0
    await provider.aclose()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("deny", Outcome.DENIED), ("fraud", Outcome.NOT_ME), ("timeout", Outcome.UNANSWERED),
        ("locked_out", Outcome.DENIED), ("", Outcome.DENIED),
    ],
)  # fmt: skip
async def test_why_a_push_is_denied(bench: Bench, status: str, outcome: Outcome) -> None:
    """Duo tells a report of fraud, and a push without an answer, apart from other denials. A locked-out user has said
    nothing."""
    bench.behave(Behaviour.DENY)
    bench.server.denied_as = status
    provider = bench.make()
    assert (await provider.poll((await provider.start(question())).handle)).outcome is outcome
    await provider.aclose()


async def test_an_unknown_preauth_result_is_a_failure(bench: Bench) -> None:
    """An unknown result of preauth does not approve the login."""
    bench.server.result = "ALLOW"
    provider = bench.make()
    with pytest.raises(ProviderError):
        await provider.start(question())
    with pytest.raises(ProviderError):
        await provider.enrolled(USER)
    await provider.aclose()


async def test_invalid_user_names_are_not_enrolled(bench: Bench) -> None:
    """Invalid names do not count as failures.

    Otherwise an attacker who tries many of them could cause an outage, in which the fallbackAction may allow logins.
    """
    provider = bench.make()
    await assert_unknown(provider, " ", "\t")
    assert bench.prompts == 0
    await provider.aclose()


async def test_outcomes_of_a_passcode(bench: Bench) -> None:
    """A passcode may be right, wrong, malformed for Duo, or from a locked-out user. CHAP cannot carry a passcode."""
    provider = bench.make()
    typed = [Code(CODE), Code(f" {CODE} "), Code("000000"), Code(None, response=bytes(17), challenge=bytes(16))]
    answers = [await provider.verify(question(), code, "") for code in typed]
    outcomes = [each.outcome for each in answers]
    assert outcomes == [Outcome.APPROVED, Outcome.APPROVED, Outcome.WRONG_CODE, Outcome.DENIED]
    assert answers[-1].text == "A passcode can only be checked with PAP."
    bench.server.passcode_status = "locked_out"
    assert (await provider.verify(question(), Code("000000"), "")).outcome is Outcome.DENIED
    await provider.aclose()


async def test_a_user_without_push_is_asked_for_a_code(bench: Bench) -> None:
    """If no device of a user supports push, the user is asked for a passcode."""
    bench.server.capabilities = ["auto", "mobile_otp", "sms"]
    provider = bench.make()
    assert await provider.start(question()) == Answer(Outcome.CODE, text="Enter a passcode from Duo Mobile.")
    assert bench.prompts == 0
    await provider.aclose()


async def test_a_refused_signature_names_the_settings_to_check(bench: Bench) -> None:
    bench.fields = {**bench.fields, "skey": SKEY[::-1]}
    provider = bench.make()
    with pytest.raises(ProviderError, match="check skey"):
        await provider.start(question())
    await provider.aclose()
    bench.fields = {**bench.fields, "skey": SKEY}
    bench.host = make_host(clock=lambda: 0)
    provider = bench.make()
    with pytest.raises(ProviderError, match="clock"):
        await provider.start(question())
    await provider.aclose()


async def test_names_of_a_login_are_sanitized(bench: Bench) -> None:
    """A login's device name is shortened and made printable for display on the phone."""
    odd = replace(question(), station="x\x00\n" * 200)
    provider = bench.make()
    await provider.start(odd)
    assert bench.server.calls[-1].parameters["pushinfo"].endswith("station=" + "x" * 100)
    await provider.aclose()


@pytest.mark.parametrize("txid", ["", "x" * 1001, 7])
async def test_a_push_without_a_usable_id_is_a_failure(bench: Bench, txid: object) -> None:
    """Without its id, a push cannot be polled. The login does not wait for it."""
    bench.server.txid = txid
    provider = bench.make()
    with pytest.raises(ProviderError, match="no usable txid"):
        await provider.start(question())
    await provider.aclose()


@pytest.mark.parametrize("length", [32, 33])
async def test_a_long_text_is_no_passcode(bench: Bench, length: int) -> None:
    """A text that is longer than any passcode is not sent to Duo."""
    provider = bench.make()
    assert (await provider.verify(question(), Code("1" * length), "")).outcome is Outcome.WRONG_CODE
    assert len(bench.server.calls) == (1 if length == 32 else 0)
    await provider.aclose()


class RecordingFactory(HttpFactory):
    """A factory of clients that record the time limit of each request, in seconds, by its path."""

    def __init__(self) -> None:
        super().__init__(egress=ANYWHERE)
        self.limits: dict[str, float] = {}

    def __call__(self, *words: str, **options: Any) -> httpx.AsyncClient:
        async def note(request: httpx.Request) -> None:
            self.limits[request.url.path] = request.extensions["timeout"]["read"]

        client = super().__call__(*words, **options)
        client.event_hooks = {"request": [note]}
        return client


async def test_only_the_long_poll_may_take_long(bench: Bench) -> None:
    """Duo answers a poll when the user answers. All other requests have the usual time limit."""
    factory = RecordingFactory()
    bench.host = make_host(http=factory)
    provider = bench.make()
    await provider.poll((await provider.start(question())).handle)
    assert factory.limits == {"/auth/v2/preauth": 10.0, "/auth/v2/auth": 10.0, "/auth/v2/auth_status": 40.0}
    await provider.aclose()

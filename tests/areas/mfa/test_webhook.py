"""Tests of the webhook of a customer."""

from collections.abc import AsyncIterator

import pytest

from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError
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
    with pytest.raises(ProviderError, match="none of approved, denied, not_me, unknown_user, code"):
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


async def test_a_hook_asks_for_a_code(bench: Bench) -> None:
    """The text of the hook is shown. The typed code is sent with the challenge and the user; a wrong one can be
    corrected. Blanks and dashes in a code of digits are removed."""
    bench.server.asks_for_code, asked = True, question()
    provider = bench.make()
    challenge = await provider.start(asked)
    assert (challenge.outcome, challenge.text) == (Outcome.CODE, "Code by SMS")
    wrong = await provider.verify(asked, Code("000000"), challenge.handle)
    assert (wrong.outcome, wrong.text) == (Outcome.WRONG_CODE, "No")
    right = await provider.verify(asked, Code("472-901"), wrong.handle)
    assert right.outcome is Outcome.APPROVED
    expected = {"type": "code", "challenge_id": asked.challenge_id, "user": USER}
    assert bench.server.codes == [{**expected, "code": "000000"}, {**expected, "code": "472901"}]
    await provider.aclose()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\r\nb\x00", "a  b"), ("x" * 500, "x" * 200), (7, ""), (None, ""), ("\ud800", "?")],
    ids=["control characters", "a long text", "a number", "nothing", "half a character"],
)
async def test_the_text_of_a_hook_is_one_short_line(bench: Bench, text: object, shown: str) -> None:
    """A hook cannot send more than the device can show, nor control characters."""
    bench.server.asks_for_code, bench.server.text = True, text
    provider = bench.make()
    assert (await provider.start(question())).text == shown
    await provider.aclose()


@pytest.mark.parametrize("typed", ["", "   ", "é", "1\x002", "1" * 65], ids=["empty", "blank", "é", "NUL", "long"])
async def test_a_text_that_is_no_code_is_not_sent(bench: Bench, typed: str) -> None:
    """It is a wrong code, and the user may type another one."""
    bench.server.asks_for_code = True
    provider = bench.make()
    challenge = await provider.start(question())
    assert (await provider.verify(question(), Code(typed), challenge.handle)).outcome is Outcome.WRONG_CODE
    assert bench.server.codes == []
    await provider.aclose()


async def test_a_code_that_the_hook_has_not_asked_for_is_denied(bench: Bench) -> None:
    """A code after the password, a code for a prompt with a poll_url, and a CHAP response are not sent."""
    provider = bench.make()
    waiting = await provider.start(question())
    for handle in ("", waiting.handle):
        denied = await provider.verify(question(), Code("472901"), handle)
        assert denied == Answer(Outcome.DENIED, text="codes are not used here")
    bench.server.asks_for_code = True
    challenge = await provider.start(question("b" * 32))
    hidden = Code(None, response=bytes(17), challenge=bytes(16))
    denied = await provider.verify(question("b" * 32), hidden, challenge.handle)
    assert denied == Answer(Outcome.DENIED, text="the code must be typed as plain text: CHAP hides it")
    assert bench.server.codes == []
    await provider.aclose()

"""Tests that every provider must pass, built-in or from an installed package.

    from sallyport.plugins import Behaviour, ProviderContract

    class TestAcme(ProviderContract):
        @pytest.fixture
        async def bench(self) -> AsyncIterator[AcmeBench]:
            async with running_acme() as bench:
                yield bench

A `Bench` has the provider and a fake of the provider's server. The fake listens on loopback, speaks the provider's
protocol, checks each request, and shows the behaviour that the test sets. The docstrings below call it "the fake
server".

The tests are async functions for trio. pytest-trio runs them with `trio_mode = true`. This module does not import
pytest.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from typing import Final, Protocol

import trio
from pydantic import SecretStr, ValidationError

from sallyport.areas.mfa.host import ConfiguredProvider, Fields, Host
from sallyport.areas.mfa.provider import Answer, Code, Enrolled, Enrolment, Outcome, Provider, ProviderError, Question

PATIENCE_S: Final = 20.0
DEADLINE_S: Final = 0.5
_FIELD_SAMPLE: Final = 1
_ODD_CODES: Final = (
    "", " ", "0", "123", "999999999999", "a" * 128, "\x00\x01", "é漢字", "000000' or '1'='1", "../..", "{}", "\r\nX: y",
)  # fmt: skip


class Behaviour(StrEnum):
    """The behaviour of the fake server."""

    APPROVE = "the user approves; the right code is accepted"
    WAIT = "the user has not answered so far; the right code is accepted"
    DENY = "the user denies; every code is refused"
    UNKNOWN_USER = "no user is known"
    # Each of the following is a failure, which a provider must report in every call that uses the fake server.
    SILENT = "the server takes requests and never answers"
    BROKEN_OFF = "the server ends the connection in the middle of an answer"
    NO_PROTOCOL = "the server answers octets that are not its protocol"
    RUBBISH = "the answers have content that cannot be parsed"
    EMPTY = "the answers can be parsed, but lack everything that is expected"
    HUGE = "the answers never end"
    REDIRECT = "the server redirects to another host, which would approve"
    FAIL = "the server reports an error (HTTP 500)"
    BUSY = "the server asks for a pause of 7 s (HTTP 429)"


HTTP_FAILURES: Final = frozenset(Behaviour) - {
    Behaviour.APPROVE, Behaviour.WAIT, Behaviour.DENY, Behaviour.UNKNOWN_USER,
}  # fmt: skip
"""All failures that a provider over HTTP can meet."""


class Bench(Protocol):
    """A provider and its fake server.

    fields: the provider's configuration, in the form of the API. secrets: texts that must never be shown. failures:
    those failures in `Behaviour` that can happen on the provider's transport. user: the name of an enrolled user.
    """

    provider: type[ConfiguredProvider]
    fields: Mapping[str, object]
    secrets: Sequence[str]
    host: Host
    failures: frozenset[Behaviour]
    user: str

    @property
    def right_code(self) -> str:
        """The code that the fake server accepts; empty if the provider takes no codes."""

    @property
    def prompts(self) -> int:
        """Number of prompts that the fake server has sent."""

    @property
    def requests(self) -> int:
        """Number of requests that the fake server has received."""

    def behave(self, behaviour: Behaviour) -> None:
        """Set the behaviour of the fake server. The behaviour at the start is APPROVE."""


class ProviderContract:
    """The tests of a provider. A subclass must define the fixture `bench`."""

    async def test_declares_what_it_is(self, bench: Bench) -> None:
        """A provider has a name and fields, and declares whether a code may follow the password. Such a provider has a
        right code."""
        provider = bench.provider
        assert provider.name.isascii() and provider.name.replace("-", "").isalnum() and provider.name.islower()
        assert issubclass(provider.fields, Fields)
        assert bench.right_code or not provider.asks_for_codes

    async def test_fields_hide_their_secrets(self, bench: Bench) -> None:
        """No repr, dump or JSON of the fields shows a secret. Every secret is in a SecretStr field."""
        fields = bench.provider.fields.model_validate(bench.fields)
        shown = f"{fields!r} {fields} {fields.model_dump()} {fields.model_dump_json()}"
        assert _without(bench, shown)
        hidden = [value.get_secret_value() for _, value in fields if isinstance(value, SecretStr)]
        assert sorted(filter(None, hidden)) == sorted(bench.secrets)

    async def test_refused_fields_are_not_repeated(self, bench: Bench) -> None:
        """A missing or malformed field is refused. The error names the field, but does not contain the value."""
        for name in bench.fields:
            for wrong in (None, "", "\x00\n", ["mallory-was-here"], {"mallory-was-here": _FIELD_SAMPLE}):
                try:
                    bench.provider.fields.model_validate({**bench.fields, name: wrong})
                except ValidationError as error:
                    assert name in str(error)
                    assert "mallory-was-here" not in str(error)
                    assert _without(bench, str(error))
                else:
                    raise AssertionError(f"{name} takes {wrong!r}")

    async def test_begins_silently(self, bench: Bench) -> None:
        """A provider that is created and closed twice sends no request. Its repr shows no secret."""
        async with _made(bench) as provider:
            assert _without(bench, repr(provider))
            await provider.aclose()
        assert bench.requests == 0

    async def test_enrolment_sends_no_prompt(self, bench: Bench) -> None:
        """A request for a user's enrolment sends no prompt. The answer may be UNKNOWN."""
        async with _made(bench) as provider:
            assert _enrolment(await provider.enrolled(bench.user)) in {Enrolment.ENROLLED, Enrolment.UNKNOWN}
            bench.behave(Behaviour.UNKNOWN_USER)
            assert _enrolment(await provider.enrolled("nobody")) in {Enrolment.NOT_ENROLLED, Enrolment.UNKNOWN}
        assert bench.prompts == 0

    async def test_unknown_user_is_not_approved(self, bench: Bench) -> None:
        """The login of an unknown user ends without an approval and without a prompt."""
        bench.behave(Behaviour.UNKNOWN_USER)
        question = _question(bench, user="nobody")
        async with _made(bench) as provider:
            answer = await _finish(bench, provider, question, await provider.start(question))
        assert answer.outcome in {Outcome.NOT_ENROLLED, Outcome.DENIED, Outcome.WRONG_CODE}
        assert bench.prompts == 0

    async def test_approval(self, bench: Bench) -> None:
        """If the user approves or types the right code, the answer is APPROVED after at most one prompt."""
        question = _question(bench)
        async with _made(bench) as provider:
            answer = await _finish(bench, provider, question, await provider.start(question))
        assert answer.outcome is Outcome.APPROVED
        assert bench.prompts <= 1

    async def test_denial(self, bench: Bench) -> None:
        """If the user denies or types a wrong code, the result is neither an approval nor a failure."""
        bench.behave(Behaviour.DENY)
        question = _question(bench)
        async with _made(bench) as provider:
            answer = await _finish(bench, provider, question, await provider.start(question))
        assert answer.outcome in {Outcome.DENIED, Outcome.NOT_ME, Outcome.WRONG_CODE}

    async def test_one_challenge_is_one_prompt(self, bench: Bench) -> None:
        """A repeated challenge sends no second prompt, even if the repetition comes at the same time. Another challenge
        sends its own prompt."""
        bench.behave(Behaviour.WAIT)
        question = _question(bench)
        async with _made(bench) as provider:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(provider.start, question)
            once = bench.prompts
            assert once <= 1
            first, again = await provider.start(question), await provider.start(question)
            assert (first.outcome, first.handle) == (again.outcome, again.handle)
            assert bench.prompts == once
            await provider.start(_question(bench, challenge_id="f" * 32))
            assert bench.prompts == 2 * once

    async def test_another_process_continues_a_challenge(self, bench: Bench) -> None:
        """A new instance of the provider can continue a challenge of which it knows only the handle. The handle fits
        into the store and contains no secret."""
        bench.behave(Behaviour.WAIT)
        question = _question(bench)
        async with _made(bench) as provider:
            answer = await provider.start(question)
        assert len(answer.handle) <= 4000
        assert _without(bench, answer.handle + answer.text)
        bench.behave(Behaviour.APPROVE)
        async with _made(bench) as provider:
            assert (await _finish(bench, provider, question, answer)).outcome is Outcome.APPROVED

    async def test_answer_of_a_waiting_challenge(self, bench: Bench) -> None:
        """Until the user answers, `poll` returns WAITING or waits. After that, each poll returns the same answer."""
        bench.behave(Behaviour.WAIT)
        async with _made(bench) as provider:
            answer = await provider.start(_question(bench))
            if answer.outcome is not Outcome.WAITING:
                return
            with trio.move_on_after(DEADLINE_S):
                assert (await provider.poll(answer.handle)).outcome is Outcome.WAITING
            bench.behave(Behaviour.APPROVE)
            assert (await _poll(provider, answer)).outcome is Outcome.APPROVED
            again = await _outcome(bench, lambda: provider.poll(answer.handle))
            assert again in {Outcome.APPROVED, None}
        assert bench.prompts == 1

    async def test_cancelling_is_harmless(self, bench: Bench) -> None:
        """A login may be cancelled twice. Cancelling sends no prompt, and the next login works."""
        bench.behave(Behaviour.WAIT)
        async with _made(bench) as provider:
            answer = await provider.start(_question(bench))
            before = bench.prompts
            await _outcome(bench, lambda: provider.cancel(answer.handle))
            await _outcome(bench, lambda: provider.cancel(answer.handle))
            assert bench.prompts == before
            bench.behave(Behaviour.APPROVE)
            question = _question(bench, challenge_id="e" * 32)
            assert (
                await _finish(bench, provider, question, await provider.start(question))
            ).outcome is Outcome.APPROVED

    async def test_code_appended_to_the_password(self, bench: Bench) -> None:
        """A code that follows the password is checked without a previous `start` and without a prompt. A provider
        that does not declare this approves no login in this way."""
        async with _made(bench) as provider:
            answer = await provider.verify(_question(bench), Code(bench.right_code or "000000"), "")
        assert (answer.outcome is Outcome.APPROVED) == bench.provider.asks_for_codes
        assert bench.prompts == 0

    async def test_odd_codes_are_wrong_codes(self, bench: Bench) -> None:
        """An unusual text in place of a code never causes a ProviderError. After a ProviderError, fallbackAction could
        admit the user."""
        async with _made(bench) as provider:
            for text in _ODD_CODES:
                answer = await provider.verify(_question(bench), Code(text), "")
                assert answer.outcome in {Outcome.WRONG_CODE, Outcome.DENIED, Outcome.NOT_ENROLLED}, text
            chap = Code(None, response=bytes(17), challenge=bytes(16))
            answer = await provider.verify(_question(bench), chap, "")
            assert answer.outcome in {Outcome.WRONG_CODE, Outcome.DENIED, Outcome.NOT_ENROLLED}

    async def test_failures_are_failures(self, bench: Bench) -> None:
        """For each failure of the fake server, a call to the server raises a ProviderError without secrets, or returns
        no definite answer. When the server works again, the provider works too."""
        for failure in sorted(bench.failures - {Behaviour.SILENT}):
            bench.behave(Behaviour.WAIT)
            question = _question(bench, challenge_id=f"{sorted(Behaviour).index(failure):032x}")
            async with _made(bench) as provider:
                with _quiet(bench):
                    waiting = await provider.start(question)
                    bench.behave(failure)
                    for ask in _calls(bench, provider, waiting):
                        await _fails(bench, ask, failure)
                bench.behave(Behaviour.APPROVE)
                assert (await _finish(bench, provider, question, waiting)).outcome is Outcome.APPROVED, failure

    async def test_silence_ends_with_the_deadline(self, bench: Bench) -> None:
        """A call to a silent server ends as soon as it is cancelled, and the next call works."""
        if Behaviour.SILENT not in bench.failures:
            return
        bench.behave(Behaviour.WAIT)
        question = _question(bench)
        async with _made(bench) as provider:
            waiting = await provider.start(question)
            bench.behave(Behaviour.SILENT)
            for ask in _calls(bench, provider, waiting):
                with trio.fail_after(PATIENCE_S / 2):
                    await _cancel_when_asked(bench, ask)
            bench.behave(Behaviour.APPROVE)
            assert (await _finish(bench, provider, question, waiting)).outcome is Outcome.APPROVED


@asynccontextmanager
async def _made(bench: Bench) -> AsyncIterator[Provider]:
    """Yield a new provider, and close it at the end. Fails if the block takes longer than PATIENCE_S."""
    with trio.fail_after(PATIENCE_S):
        provider = bench.provider(bench.provider.fields.model_validate(bench.fields), bench.host)
        try:
            yield provider
        finally:
            await provider.aclose()


def _enrolment(found: Enrolment | Enrolled) -> Enrolment:
    return found.enrolment if isinstance(found, Enrolled) else found


def _question(bench: Bench, *, user: str = "", challenge_id: str = "0" * 31 + "1") -> Question:
    return Question(
        challenge_id=challenge_id,
        domain_id=bench.host.domain_id,
        domain=bench.host.domain,
        user=user or bench.user,
        device="switch-7",
        source="192.0.2.7",
        station="00-11-22-33-44-55",
        expires_at=bench.host.clock() + 60_000_000,
    )


async def _finish(bench: Bench, provider: Provider, question: Question, answer: Answer) -> Answer:
    """Continue a login after the provider's first answer, as the login path does. Return the final answer."""
    if answer.outcome is Outcome.WAITING:
        return await _poll(provider, answer)
    if answer.outcome is Outcome.CODE:
        return await provider.verify(question, Code(bench.right_code), answer.handle)
    return answer


async def _poll(provider: Provider, answer: Answer) -> Answer:
    while answer.outcome is Outcome.WAITING:
        assert answer.handle
        answer = await provider.poll(answer.handle)
    return answer


def _calls(bench: Bench, provider: Provider, waiting: Answer) -> list[Callable[[], Awaitable[object]]]:
    """Return one call for each method of the provider. The call of `start` has a new challenge, because `start` sends
    no request for a repeated challenge."""
    new = _question(bench, challenge_id="d" * 32)
    return [
        lambda: provider.enrolled(bench.user),
        lambda: provider.start(new),
        lambda: provider.poll(waiting.handle),
        lambda: provider.verify(new, Code(bench.right_code or "000000"), ""),
        lambda: provider.cancel(waiting.handle),
    ]


async def _fails(bench: Bench, ask: Callable[[], Awaitable[object]], failure: Behaviour) -> None:
    """Check that a call that uses the fake server raises ProviderError or returns no definite answer."""
    asked = bench.requests
    try:
        with trio.fail_after(PATIENCE_S / 2):
            result = await ask()
    except ProviderError as error:
        assert _without(bench, "".join(traceback.format_exception(error)))
        if failure is Behaviour.BUSY and bench.requests > asked:
            assert error.retry_after_s == 7.0
    else:
        never = bench.requests == asked or result in {None, Enrolment.UNKNOWN}
        assert never, f"{failure}: {result}"
        assert not (isinstance(result, Answer) and result.outcome is Outcome.APPROVED), failure


async def _cancel_when_asked(bench: Bench, ask: Callable[[], Awaitable[object]]) -> None:
    """Cancel a call as soon as the fake server has received its request. If the call sends no request, it may also
    return without being cancelled."""
    asked, returned = bench.requests, trio.Event()

    async def run() -> None:
        await _outcome(bench, ask)
        returned.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        while bench.requests == asked and not returned.is_set():
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()


async def _outcome(bench: Bench, ask: Callable[[], Awaitable[object]]) -> Outcome | None:
    """Return the outcome of a call, or None if it raised ProviderError or returned no Answer."""
    try:
        result = await ask()
    except ProviderError as error:
        assert _without(bench, str(error))
        return None
    return result.outcome if isinstance(result, Answer) else None


def _without(bench: Bench, text: str) -> bool:
    return not any(secret in text for secret in bench.secrets)


class _Kept(logging.Handler):
    """A log handler that collects the lines logged through the standard library."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def _quiet(bench: Bench) -> Iterator[None]:
    """Check that nothing in the block logs a secret or a user name, even at level DEBUG."""
    root, kept = logging.getLogger(), _Kept()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(kept)
    logged = "\n".join(kept.lines)
    assert _without(bench, logged)
    assert bench.user not in logged

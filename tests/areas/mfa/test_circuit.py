"""Tests of the guard of a provider: deadlines, the circuit breaker, pauses, and the measured answer times of users."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
import structlog
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.mfa.circuit import FAILURES, KEPT_S, OPEN_S, Guarded, Health
from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.host import Fields
from sallyport.areas.mfa.provider import (
    Answer,
    Code,
    Enrolled,
    Enrolment,
    Outcome,
    ProviderError,
    Question,
    Strength,
)
from sallyport.base.errors import StoreError
from sallyport.metrics import MfaMetrics
from tests.areas import SetClock
from tests.areas.mfa.benches import hook_bench
from tests.areas.mfa.host import question

Act = Callable[[], Awaitable[object]]
APPROVED = Answer(Outcome.APPROVED)
WAITING = Answer(Outcome.WAITING, handle="h1")
DEADLINE_S = 10.0


class Scripted:
    """A provider that follows a script: each call returns an answer, raises an exception or calls a function."""

    name: ClassVar[str] = "scripted"
    fields: ClassVar[type[Fields]] = Fields
    asks_for_codes: ClassVar[bool] = True
    strongest: Strength

    def __init__(self) -> None:
        self.next: object = APPROVED
        self.calls = 0

    async def _act(self) -> object:
        self.calls += 1
        if isinstance(self.next, BaseException):
            raise self.next
        return await self.next() if callable(self.next) else self.next

    async def enrolled(self, user: str) -> object:
        """Follow the script."""
        return await self._act()

    async def start(self, question: Question) -> object:
        """Follow the script."""
        return await self._act()

    async def poll(self, handle: str) -> object:
        """Follow the script."""
        return await self._act()

    async def verify(self, question: Question, code: Code, handle: str) -> object:
        """Follow the script."""
        return await self._act()

    async def cancel(self, handle: str) -> None:
        """Follow the script."""
        await self._act()

    async def aclose(self) -> None:
        """Follow the script."""
        await self._act()


@dataclass
class Counted:
    """A meter that records its calls."""

    results: list[tuple[str, str]] = field(default_factory=list)
    circuits: list[bool] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """Record a call."""
        assert provider == "scripted"
        assert seconds >= 0
        self.results.append((call, result))
        if result == "refused":
            self.refused_s.append(seconds)

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit has changed."""
        self.circuits.append(is_open)


class Stand:
    """A guarded provider on trio's test clock."""

    def __init__(self) -> None:
        self.provider = Scripted()
        self.meter = Counted()
        self.clock = SetClock(1000)
        self.guarded = Guarded(self.provider, self.meter, now=trio.current_time, clock=self.clock)

    async def start(self, does: object = APPROVED) -> Answer:
        """Start one call."""
        self.provider.next = does
        return await self.guarded.start(question(), deadline_s=DEADLINE_S)

    async def fails(self, does: object = None, match: str | None = None) -> ProviderError:
        """Start a call, which must fail."""
        with pytest.raises(ProviderError, match=match) as failure:
            await self.start(does or ProviderError("away"))
        return failure.value

    async def open(self) -> None:
        """Let calls fail until the circuit is open."""
        for _ in range(FAILURES):
            await self.fails()


@pytest.fixture
async def stand() -> Stand:
    """Return a guarded provider. A test in which trio's clock must jump requests the fixture autojump_clock itself."""
    return Stand()


async def test_the_health_is_that_of_the_last_call(stand: Stand) -> None:
    """It has the time of the first failure after the last success. A pause that the provider asks for is no failure."""
    assert stand.guarded.health == Health()
    await stand.start()
    assert stand.guarded.health == Health(1000)
    stand.clock.now = 2000
    await stand.fails(ProviderError("away"))
    stand.clock.now = 3000
    await stand.fails(ProviderError("still away"))
    assert stand.guarded.health == Health(1000, 2000, "still away")
    await stand.start()
    assert stand.guarded.health == Health(3000)
    await stand.fails(ProviderError("busy", retry_after_s=5.0))
    assert stand.guarded.health == Health(3000)


async def test_a_closed_circuit_passes_all_calls_on(stand: Stand, autojump_clock: MockClock) -> None:
    """If the circuit is closed, each call returns the provider's result."""
    assert await stand.start() is APPROVED
    assert await stand.guarded.poll("h", deadline_s=1) is APPROVED
    assert await stand.guarded.verify(question(), Code("1"), "", deadline_s=1) is APPROVED
    stand.provider.next = Enrolment.ENROLLED
    assert await stand.guarded.enrolled("ann", deadline_s=1) == Enrolled(Enrolment.ENROLLED)
    stand.provider.next = None
    await stand.guarded.cancel("h", deadline_s=1)
    calls = ["start", "poll", "verify", "enrolled", "cancel"]
    assert stand.meter.results == [(call, "ok") for call in calls]


def test_strengths_are_ordered() -> None:
    """Strengths are compared by their order, not by their names."""
    strongest_first = [Strength.PHISHING_RESISTANT, Strength.TWO_CHANNELS, Strength.ANY]
    assert sorted(strongest_first) == strongest_first[::-1]
    assert Strength.TWO_CHANNELS < Strength.PHISHING_RESISTANT
    assert Strength.PHISHING_RESISTANT > Strength.ANY
    assert Strength.ANY <= Strength.ANY
    assert not Strength.ANY > Strength.ANY
    assert not Strength.ANY < Strength.ANY
    assert not Strength.ANY >= Strength.TWO_CHANNELS


async def test_an_enrolment_has_the_strength_of_the_provider(stand: Stand) -> None:
    """A provider that does not know how strong the factors of a user are gets its own strength for the user. A provider
    without a strength has the lowest."""
    stand.provider.next = Enrolment.ENROLLED
    assert (await stand.guarded.enrolled("ann", deadline_s=1)).strongest is Strength.ANY
    stand.provider.strongest = Strength.TWO_CHANNELS
    assert (await stand.guarded.enrolled("ann", deadline_s=1)).strongest is Strength.TWO_CHANNELS
    stand.provider.next = Enrolled(Enrolment.ENROLLED, Strength.PHISHING_RESISTANT)
    assert await stand.guarded.enrolled("ann", deadline_s=1) is stand.provider.next


async def test_five_failures_in_a_row_open_the_circuit(stand: Stand, autojump_clock: MockClock) -> None:
    """Five failures in a row open the circuit; four failures and a success do not.

    While the circuit is open, no call is made.
    """
    for _ in range(FAILURES - 1):
        await stand.fails()
    await stand.start()
    await stand.open()
    assert stand.guarded.is_open
    asked = stand.provider.calls
    await stand.fails(APPROVED, "circuit open")
    assert stand.provider.calls == asked
    assert stand.meter.results[-1] == ("start", "refused")
    assert stand.meter.circuits == [True]


async def test_a_half_open_circuit_makes_one_call(stand: Stand, autojump_clock: MockClock) -> None:
    """After thirty seconds one call is made, while all other calls still fail. If it succeeds, the circuit closes."""
    await stand.open()
    await trio.sleep(OPEN_S - 0.1)
    await stand.fails(APPROVED, "circuit open")
    await trio.sleep(0.2)

    async def slowly() -> Answer:
        await trio.sleep(1)
        return APPROVED

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stand.start, slowly)
        await wait_all_tasks_blocked()
        await stand.fails(slowly, "circuit open")
    assert not stand.guarded.is_open
    assert await stand.start() is APPROVED
    assert stand.meter.circuits == [True, False]


async def test_a_failed_trial_call_opens_the_circuit_again(stand: Stand, autojump_clock: MockClock) -> None:
    """After a failed trial call the circuit stays open for another thirty seconds."""
    await stand.open()
    for _ in range(3):
        await trio.sleep(OPEN_S + 0.1)
        await stand.fails(match="away")
        await stand.fails(APPROVED, "circuit open")
    await trio.sleep(OPEN_S + 0.1)
    assert await stand.start() is APPROVED


async def test_a_cancelled_trial_call_leaves_the_circuit_half_open(stand: Stand, autojump_clock: MockClock) -> None:
    """If the login of a trial call is cancelled, the next call is the trial."""
    await stand.open()
    await trio.sleep(OPEN_S + 0.1)
    with trio.move_on_after(1):
        await stand.start(trio.sleep_forever)
    assert stand.guarded.is_open
    assert await stand.start() is APPROVED


async def test_late_failures_do_not_prolong_the_open_circuit(stand: Stand, autojump_clock: MockClock) -> None:
    """Calls that began before the circuit opened may fail later. The thirty seconds are counted from the opening."""

    async def fails_late() -> Answer:
        await trio.sleep(9)
        raise ProviderError("away")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stand.fails, fails_late)
        await wait_all_tasks_blocked()
        await stand.open()
    await trio.sleep(OPEN_S - 8.9)
    assert await stand.start() is APPROVED


async def test_a_call_over_its_deadline_is_a_failure(stand: Stand, autojump_clock: MockClock) -> None:
    for _ in range(FAILURES):
        before = trio.current_time()
        await stand.fails(trio.sleep_forever, "the provider has not answered within 10 s")
        assert trio.current_time() - before == pytest.approx(DEADLINE_S)
    assert stand.guarded.is_open
    assert stand.meter.results[-1] == ("start", "timeout")


async def test_a_cancelled_call_is_not_counted(stand: Stand, autojump_clock: MockClock) -> None:
    """If a login ends before the provider answers, this is no failure of the provider."""
    for _ in range(FAILURES + 1):
        with trio.move_on_after(1):
            await stand.start(trio.sleep_forever)
    assert not stand.guarded.is_open
    assert stand.meter.results == []


async def test_any_exception_becomes_a_provider_error(stand: Stand, autojump_clock: MockClock) -> None:
    """The log has the position of the error, but not its message, which may contain a secret."""
    with structlog.testing.capture_logs() as logs:
        for _ in range(FAILURES):
            await stand.fails(ZeroDivisionError("the skey is hunter2"), "unexpectedly")
        await stand.fails(match="circuit open")
    assert [entry["error"] for entry in logs] == ["ZeroDivisionError"] * FAILURES
    assert "hunter2" not in str(logs)
    assert logs[0]["at"].startswith("test_circuit.py:")
    failure = (await stand.fails()).__cause__
    assert failure is None


@pytest.mark.parametrize(
    "answer",
    [None, True, "approved", Outcome.APPROVED, Answer(Outcome.WRONG_CODE), Answer(Outcome.WAITING, handle="x" * 4001)],
)
async def test_an_invalid_answer_is_a_failure(stand: Stand, autojump_clock: MockClock, answer: object) -> None:
    """An answer that does not fit the call is a failure, and so is an answer that is too long for the store."""

    async def give() -> object:
        return answer

    await stand.fails(give, "is not valid")


async def test_a_failing_store_does_not_open_the_circuit(stand: Stand, autojump_clock: MockClock) -> None:
    """StoreError is passed on to the caller, and the fallbackAction does not apply to it."""
    for _ in range(FAILURES + 1):
        with pytest.raises(StoreError):
            await stand.start(StoreError("full"))
    assert not stand.guarded.is_open


async def test_a_busy_provider_gets_a_pause(stand: Stand, autojump_clock: MockClock) -> None:
    """After a 429 response no call is made for the time that the provider asked for.

    This counts neither as a failure nor as a success.
    """
    await stand.fails(ProviderError("busy", retry_after_s=17.0))
    await trio.sleep(16)
    refused = await stand.fails(APPROVED, "for a pause")
    assert refused.retry_after_s == pytest.approx(1)
    assert stand.provider.calls == 1
    await trio.sleep(1.1)
    assert await stand.start() is APPROVED
    assert stand.meter.results[0] == ("start", "busy")
    for _ in range(FAILURES + 1):
        await stand.fails(ProviderError("busy", retry_after_s=1.0))
        await trio.sleep(1.1)
    assert not stand.guarded.is_open


@pytest.mark.parametrize("limited", [True, False])
async def test_a_rate_limit_for_a_code_affects_only_its_user(
    stand: Stand, autojump_clock: MockClock, limited: bool
) -> None:
    """After a 429 response to a code, the logins of other users still use the provider.

    A 503 response affects all users.
    """
    stand.provider.next = ProviderError("not now", retry_after_s=17.0, limited=limited)
    with pytest.raises(ProviderError):
        await stand.guarded.verify(question(), Code("000000"), "", deadline_s=1)
    if limited:
        assert await stand.start() is APPROVED
    else:
        await stand.fails(APPROVED, "for a pause")


async def test_a_pause_has_a_limit(stand: Stand, autojump_clock: MockClock) -> None:
    """If a provider asks for a pause of a day, the pause is one minute."""
    await stand.fails(ProviderError("busy", retry_after_s=86_400.0))
    await trio.sleep(60.1)
    assert await stand.start() is APPROVED


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(ProviderError("away"), id="failure"),
        pytest.param(ZeroDivisionError(), id="unexpected"),
        pytest.param(trio.sleep_forever, id="silence"),
    ],
)
async def test_cancel_never_raises(
    stand: Stand, autojump_clock: MockClock, behaviour: Exception | Callable[[], Awaitable[None]]
) -> None:
    """An error while a prompt is withdrawn is ignored."""
    stand.provider.next = behaviour
    await stand.guarded.cancel("h", deadline_s=1)


async def test_close_never_raises(stand: Stand) -> None:
    """An error while a connection is closed is ignored."""
    stand.provider.next = OSError()
    await stand.guarded.aclose()


async def test_a_provider_that_fails_and_recovers() -> None:
    """Over real HTTP, a provider that breaks off its answers opens the circuit.

    When the provider has recovered, one call discovers this and logins continue without a restart.
    """
    seconds = [0.0]
    async with hook_bench() as bench:
        guarded = Guarded(bench.make(), MfaMetrics(CollectorRegistry()), now=lambda: seconds[0])
        waiting = await guarded.start(question(), deadline_s=5)
        bench.behave(Behaviour.BROKEN_OFF)
        for _ in range(FAILURES):
            with pytest.raises(ProviderError, match="is incomplete"):
                await guarded.poll(waiting.handle, deadline_s=5)
        asked = bench.requests
        bench.behave(Behaviour.APPROVE)
        with pytest.raises(ProviderError, match="circuit open"):
            await guarded.poll(waiting.handle, deadline_s=5)
        assert bench.requests == asked
        seconds[0] += OPEN_S
        assert (await guarded.poll(waiting.handle, deadline_s=5)).outcome is Outcome.APPROVED
        assert guarded.p95_s() == OPEN_S
        await guarded.aclose()


# --- how long users take --------------------------------------------------------------------------------------


async def test_the_p95_of_pushes(stand: Stand, autojump_clock: MockClock) -> None:
    """The time is measured from the prompt to the user's answer, over all polls. The last 200 times are used."""
    assert stand.guarded.p95_s() is None
    for seconds in range(300):
        await stand.start(WAITING)
        stand.provider.next = Answer(Outcome.WAITING, handle="h2")
        assert (await stand.guarded.poll("h1", deadline_s=1)).handle == "h2"
        await trio.sleep(seconds)
        stand.provider.next = Answer(Outcome.DENIED if seconds % 2 else Outcome.APPROVED)
        await stand.guarded.poll("h2", deadline_s=1)
    assert stand.guarded.p95_s() == pytest.approx(289)  # the 190th of 100..299


async def test_the_start_of_an_abandoned_prompt_is_forgotten(stand: Stand, autojump_clock: MockClock) -> None:
    """The start of a prompt that has expired is deleted from memory when the next prompt begins."""
    for handle in ("a", "b"):
        await stand.start(Answer(Outcome.WAITING, handle))
        await trio.sleep(KEPT_S)
    assert len(stand.guarded._began) == 1


async def test_the_p95_of_codes(stand: Stand, autojump_clock: MockClock) -> None:
    """The time is measured from the request for a code to the right code, including wrong codes.

    A code that is appended to the password has no prompt and is not measured.
    """
    await stand.start(Answer(Outcome.CODE))
    await trio.sleep(5)
    stand.provider.next = Answer(Outcome.WRONG_CODE)
    await stand.guarded.verify(question(), Code("1"), "", deadline_s=1)
    await trio.sleep(2)
    stand.provider.next = APPROVED
    await stand.guarded.verify(question(), Code("2"), "", deadline_s=1)
    assert stand.guarded.p95_s() == pytest.approx(7)
    await stand.guarded.verify(question("b" * 32), Code("3"), "", deadline_s=1)
    assert stand.guarded.p95_s() == pytest.approx(7)


async def test_abandoned_prompts_are_not_measured(stand: Stand, autojump_clock: MockClock) -> None:
    """A prompt that was withdrawn and a login without a prompt are not measured as answer times."""
    await stand.start(WAITING)
    stand.provider.next = None
    await stand.guarded.cancel("h1", deadline_s=1)
    stand.provider.next = APPROVED
    await stand.guarded.poll("h1", deadline_s=1)
    await stand.start(APPROVED)
    assert stand.guarded.p95_s() is None

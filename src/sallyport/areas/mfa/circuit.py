"""Guard the calls of a provider by deadlines and a circuit breaker.

    closed --5 failures in a row--> open --30 s--> half open: one call is made
      ^                               ^                    |           |
      |                               +------- fails ------+           |
      +---------------------------------- succeeds --------------------+

A failure is a ProviderError, a missed deadline, or any unexpected exception. While the circuit is open, calls fail at
once, so that logins do not wait for an unreachable provider.

If a provider answers HTTP 429, no call is made until its Retry-After has passed. This counts as neither failure nor
success. But HTTP 429 as the answer to a `verify` begins no such pause, and only this call fails. Many providers limit
the codes of each user, and an attacker who guesses codes must not block the provider for all users.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog
import trio

from sallyport.areas.mfa.provider import (
    CHECK_USER,
    NO_WEB,
    Answer,
    Code,
    Enrolled,
    Enrolment,
    Outcome,
    Provider,
    ProviderError,
    Question,
    Strength,
)
from sallyport.base.bounded import ExpiringMap
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import StoreError
from sallyport.outgoing.pool import MAX_CONNECTIONS

FAILURES: Final = 5
OPEN_S: Final = 30.0
MAX_REST_S: Final = 60.0
MAX_HANDLE: Final = 4000
MAX_CALLS: Final = MAX_CONNECTIONS
"""Maximum number of simultaneous calls for logins, if a provider has no `most_calls`."""
_DURATIONS: Final = 200
_REMEMBERED: Final = 10_000  # maximum number of challenges whose start time is stored
KEPT_S: Final = 300.0  # lifetime of a start time after the last call
_FINAL: Final = frozenset({Outcome.APPROVED, Outcome.DENIED, Outcome.NOT_ME})
_POLLED: Final = _FINAL | {Outcome.UNANSWERED, Outcome.UNBOUND, Outcome.NO_TRIES_LEFT, Outcome.WAITING}
_STARTED: Final = frozenset(Outcome) - {Outcome.WRONG_CODE}
_VERIFIED: Final = frozenset(Outcome) - {Outcome.WAITING}

ResultT = TypeVar("ResultT")


class CircuitOpen(ProviderError):
    """Raised if a provider that has failed is not asked for a while."""


class _Late(ProviderError):
    """The error of a call that missed its deadline."""


class Meter(Protocol):
    """Metrics of the calls to providers. Each label has a fixed set of values."""

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """Count a call.

        call: enrolled, start, poll, verify or cancel. result: ok, error, timeout, busy (HTTP 429), or refused. A
        refused call was not made, because the circuit was open or a Retry-After had not passed.
        """

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit of a domain with this provider has opened or closed."""


@dataclass(frozen=True, slots=True)
class Health:
    """The last known state of a provider, from its calls. Times are in microseconds.

    worked_at: the time of the last call that succeeded, or 0. fails_since: the time of the first failure after it, or 0
    if no call has failed since. error: the text of the last failure, or empty.
    """

    worked_at: int = 0
    fails_since: int = 0
    error: str = ""


class Guarded:
    """One domain's provider, guarded by its circuit.

    Calls raise only ProviderError and StoreError. A call that the caller cancels counts as neither failure nor success.
    now: a function that returns monotonic seconds. room: the limit of simultaneous calls for logins. A caller acquires
    this semaphore before it makes a call. So the wait for the semaphore does not count towards the deadline of the
    call. health: the last known state. clock: a function that returns the time for `health`.
    """

    def __init__(
        self,
        provider: Provider,
        meter: Meter,
        *,
        now: Callable[[], float] = time.monotonic,
        clock: Clock = now_us,
    ) -> None:
        self.provider = provider
        self.room = trio.Semaphore(getattr(provider, "most_calls", MAX_CALLS))
        self._meter = meter
        self._now = now
        self._clock = clock
        self.health = Health()
        self._failures = 0
        self._closed_until = 0.0  # until then an open circuit allows no call
        self._rest_until = 0.0
        self._limited_until = 0.0  # the end of a pause because of a rate limit
        self._trying = False
        self._began = ExpiringMap[str, float](_REMEMBERED, KEPT_S)
        self._took: deque[float] = deque(maxlen=_DURATIONS)

    @property
    def only_codes(self) -> bool:
        """Whether every login needs a typed code. Providers may leave this attribute out."""
        return getattr(self.provider, "only_codes", False)

    @property
    def asks_for_codes(self) -> bool:
        """Whether the provider accepts typed codes, see `Provider`."""
        return self.provider.asks_for_codes

    @property
    def hints(self) -> Sequence[str]:
        """Warnings about the configuration. Providers may leave this attribute out."""
        return getattr(self.provider, "hints", ())

    @property
    def shows_links(self) -> bool:
        """Whether a challenge shows an enrolment link to a person without a factor. Providers may leave this attribute
        out."""
        return getattr(self.provider, "shows_links", False)

    @property
    def binds_by_code(self) -> bool:
        """Whether the user must type digits of a page. Providers may leave this attribute out."""
        return getattr(self.provider, "binds_by_code", False)

    @property
    def web_problem(self) -> str:
        """Why the provider cannot confirm users whose password nobody has checked; empty if it can. Providers may leave
        this attribute out."""
        return getattr(self.provider, "web_problem", NO_WEB)

    @property
    def strongest(self) -> Strength:
        """The highest strength that the provider's answers can have. Providers may leave this attribute out."""
        return getattr(self.provider, "strongest", Strength.ANY)

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open or half open."""
        return self._failures >= FAILURES

    def p95_s(self) -> float | None:
        """Return the time in seconds within which 95 % of the last 200 prompts were answered. Return None if no prompt
        was answered yet."""
        return sorted(self._took)[ceil(len(self._took) * 0.95) - 1] if self._took else None

    async def check(self, *, deadline_s: float) -> str:
        """Check the provider, even if the circuit is open. Return the result in words. Raises ProviderError,
        StoreError.

        A success closes the circuit, but a failure does not count for it. deadline_s: the longest wait, in seconds.
        """
        own: Callable[[], Awaitable[str]] = getattr(self.provider, "check", self._check)
        try:
            found = await _within(deadline_s, own)
        except ProviderError as error:
            self._fail(error)
            raise
        except StoreError:
            raise
        except Exception as error:
            self._log(error)
            failure = ProviderError(f"the provider failed unexpectedly ({type(error).__name__})")
            self._fail(failure)
            raise failure from None
        self._succeed()
        return found

    async def _check(self) -> str:
        await self.provider.enrolled(CHECK_USER)
        return "the provider answers"

    async def enrolled(self, user: str, *, deadline_s: float) -> Enrolled:
        """Call `Provider.enrolled`. deadline_s: the longest wait, in seconds."""
        found = await self._call("enrolled", lambda: self.provider.enrolled(user), _is_enrolment, deadline_s)
        return found if isinstance(found, Enrolled) else Enrolled(found, self.strongest)

    async def start(self, question: Question, *, deadline_s: float) -> Answer:
        """Call `Provider.start`. deadline_s: the longest wait, in seconds."""
        began = self._now()
        answer = await self._ask("start", lambda: self.provider.start(question), _STARTED, deadline_s)
        if answer.outcome is Outcome.WAITING:
            self._began.put(answer.handle, began, now=self._now())
        elif answer.outcome is Outcome.CODE:
            self._began.put(question.challenge_id, began, now=self._now())
        return answer

    async def poll(self, handle: str, *, deadline_s: float) -> Answer:
        """Call `Provider.poll`. If the login ends, the caller cancels the call, which does not count as a failure.

        deadline_s: the longest wait, in seconds. It must be at least 30, because some providers answer only when the
        user answers.
        """
        answer = await self._ask("poll", lambda: self.provider.poll(handle), _POLLED, deadline_s)
        self._go_on(answer, handle, answer.handle)
        return answer

    async def verify(self, question: Question, code: Code, handle: str, *, deadline_s: float) -> Answer:
        """Call `Provider.verify`. deadline_s: the longest wait, in seconds."""
        answer = await self._ask("verify", lambda: self.provider.verify(question, code, handle), _VERIFIED, deadline_s)
        self._go_on(answer, question.challenge_id, question.challenge_id)
        return answer

    async def cancel(self, handle: str, *, deadline_s: float) -> None:
        """Call `Provider.cancel`. Errors are ignored, because the prompt expires anyway."""
        self._began.pop(handle)
        try:
            await self._call("cancel", lambda: self.provider.cancel(handle), lambda result: result is None, deadline_s)
        except (ProviderError, StoreError):
            return

    async def aclose(self) -> None:
        """Call `Provider.aclose`. Errors are only logged."""
        if self.is_open:
            self._failures = 0
            self._meter.circuit(self.provider.name, is_open=False)
        try:
            await self.provider.aclose()
        except Exception as error:
            self._log(error)

    def _go_on(self, answer: Answer, key: str, next_key: str) -> None:
        now = self._now()
        began = self._began.get(key, now=now)
        self._began.pop(key)
        if began is None:
            return
        if answer.outcome in _FINAL:
            self._took.append(now - began)
        elif answer.outcome not in (Outcome.NOT_ENROLLED, Outcome.UNANSWERED):
            self._began.put(next_key, began, now=now)

    async def _ask(
        self, call: str, ask: Callable[[], Awaitable[Answer]], expected: frozenset[Outcome], deadline_s: float
    ) -> Answer:
        def makes_sense(answer: object) -> bool:
            return isinstance(answer, Answer) and answer.outcome in expected and len(answer.handle) <= MAX_HANDLE

        return await self._call(call, ask, makes_sense, deadline_s)

    async def _call(
        self, call: str, ask: Callable[[], Awaitable[ResultT]], makes_sense: Callable[[object], bool], deadline_s: float
    ) -> ResultT:
        began = self._now()
        trying = self._admit(call)
        result = ""
        try:
            answer = await _within(deadline_s, ask)
            if not makes_sense(answer):
                raise ProviderError("the provider's answer is not valid")
        except ProviderError as error:
            result = self._note(error, call, tried=trying)
            raise
        except StoreError:  # an error of the store, not of the provider
            result = "error"
            raise
        except Exception as error:
            self._log(error)
            failure = ProviderError(f"the provider failed unexpectedly ({type(error).__name__})")
            result = self._note(failure, call, tried=trying)
            raise failure from None
        else:
            result = "ok"
            self._succeed()
            return answer
        finally:
            self._trying = self._trying and not trying
            if result:  # empty if the call was cancelled
                self._meter.called(self.provider.name, call, result, self._now() - began)

    def _admit(self, call: str) -> bool:
        """Check that a call may be made now. Return whether the circuit is half open, so that this call tries the
        provider. Raises ProviderError if the call must not be made."""
        now, refusal = self._now(), None
        if now < self._rest_until:
            text = "the provider has asked for a pause (Retry-After)"
            refusal = ProviderError(text, retry_after_s=self._rest_until - now, limited=now < self._limited_until)
        elif self.is_open and (now < self._closed_until or self._trying):
            refusal = CircuitOpen("circuit open")
        if refusal is not None:
            self._meter.called(self.provider.name, call, "refused", 0.0)
            raise refusal
        self._trying = self._trying or self.is_open
        return self.is_open

    def _succeed(self) -> None:
        if self.is_open:
            self._meter.circuit(self.provider.name, is_open=False)
        self._failures = 0
        self.health = Health(self._clock())

    def _fail(self, error: ProviderError) -> None:
        """Record a failure in `health`. A provider that asks for a pause has not failed."""
        if error.retry_after_s <= 0:
            before = self.health
            self.health = Health(before.worked_at, before.fails_since or self._clock(), str(error))

    def _note(self, error: ProviderError, call: str, *, tried: bool) -> str:
        """Count a failure, or begin a pause. Return the label value for the metric. tried: whether the call tried the
        provider while the circuit was half open."""
        now = self._now()
        self._fail(error)
        if error.retry_after_s > 0:
            if call != "verify" or not error.limited:
                until = now + min(error.retry_after_s, MAX_REST_S)
                self._rest_until = max(self._rest_until, until)
                if error.limited:
                    self._limited_until = max(self._limited_until, until)
            return "busy"
        self._failures += 1
        if self._failures == FAILURES:
            self._meter.circuit(self.provider.name, is_open=True)
        if self._failures == FAILURES or tried:  # not for calls that began before the circuit opened
            self._closed_until = now + OPEN_S
        return "timeout" if isinstance(error, _Late) else "error"

    def _log(self, error: Exception) -> None:
        """Log the type and the source location of an unexpected exception. Its text is left out, because it may contain
        secrets."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
        structlog.get_logger().error(
            "mfa_provider_failed", provider=self.provider.name, error=type(error).__name__, at=where
        )


class Unavailable(StrEnum):
    """The reasons why a domain has no provider that can be asked."""

    NONE = "none"
    UNREADABLE = "unreadable"
    """The domain has a provider, but its configuration cannot be read. This is treated like an unreachable provider."""


NO_PROVIDER: Final = Unavailable.NONE


@dataclass(frozen=True, slots=True)
class Attached:
    """A domain's provider, ready for calls.

    stamp: a value that changes with every change of the configuration. A challenge with an older stamp is invalid.
    timeout_s: the time that a user may take to answer, in seconds.
    """

    name: str
    stamp: str
    provider: Guarded
    timeout_s: float


class Providers(Protocol):
    """The providers of all domains."""

    def of(self, domain_id: int, name: str = "") -> Attached | Unavailable:
        """Return a provider of a domain, or the reason why there is none. A change of the configuration takes effect at
        the next call of this method. name: the name of the provider, or empty for the default one of the domain."""


async def _within(deadline_s: float, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
    with trio.move_on_after(deadline_s):
        return await ask()
    raise _Late(f"the provider has not answered within {deadline_s:g} s")


def _is_enrolment(answer: object) -> bool:
    return isinstance(answer, Enrolment | Enrolled)

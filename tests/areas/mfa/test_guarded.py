"""Tests of what the guard of a provider passes on: attributes that a provider may leave out, and outcomes."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

import pytest

from sallyport.areas.mfa.circuit import Guarded, Health
from sallyport.areas.mfa.provider import NO_WEB, Answer, Code, Enrolment, Outcome, ProviderError, Strength
from tests.areas.mfa.host import question
from tests.areas.mfa.test_circuit import DEADLINE_S, Counted, Scripted, Stand, stand

__all__ = ["stand"]

CALLS: dict[str, Callable[[Guarded], Awaitable[Answer]]] = {
    "start": lambda guarded: guarded.start(question(), deadline_s=DEADLINE_S),
    "poll": lambda guarded: guarded.poll("h1", deadline_s=DEADLINE_S),
    "verify": lambda guarded: guarded.verify(question(), Code("1"), "", deadline_s=DEADLINE_S),
}
SENSELESS = {
    ("start", Outcome.WRONG_CODE),
    ("poll", Outcome.CODE),
    ("poll", Outcome.WRONG_CODE),
    ("poll", Outcome.NOT_ENROLLED),
    ("poll", Outcome.NOT_RETURNED),
    ("poll", Outcome.TOO_MANY),
    ("verify", Outcome.WAITING),
}
"""The outcomes that a call cannot have."""


class Talkative(Scripted):
    """A provider with each attribute that a provider may leave out."""

    only_codes: ClassVar[bool] = True
    hints: ClassVar[list[str]] = ["a warning"]
    shows_links: ClassVar[bool] = True
    binds_by_code: ClassVar[bool] = True
    web_problem: ClassVar[str] = ""
    strongest: ClassVar[Strength] = Strength.TWO_CHANNELS
    most_calls: ClassVar[int] = 3


def attributes(guarded: Guarded) -> tuple[object, ...]:
    """Return the attributes that a provider may leave out."""
    return (
        guarded.only_codes,
        list(guarded.hints),
        guarded.shows_links,
        guarded.binds_by_code,
        guarded.web_problem,
        guarded.strongest,
        guarded.room.value,
    )


def test_attributes_that_a_provider_leaves_out() -> None:
    """Such a provider takes logins without codes, shows no links, and cannot confirm a login of the first factor
    `web`."""
    assert attributes(Guarded(Scripted(), Counted())) == (False, [], False, False, NO_WEB, Strength.ANY, 2048)
    assert attributes(Guarded(Talkative(), Counted())) == (
        True,
        ["a warning"],
        True,
        True,
        "",
        Strength.TWO_CHANNELS,
        3,
    )


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("call", CALLS)
async def test_each_outcome_of_a_call(stand: Stand, call: str, outcome: Outcome) -> None:
    """An outcome that a call can have is passed on. Any other one is a failure of the provider."""
    stand.provider.next = Answer(outcome, handle="h1")
    if (call, outcome) in SENSELESS:
        with pytest.raises(ProviderError, match="not valid"):
            await CALLS[call](stand.guarded)
    else:
        assert (await CALLS[call](stand.guarded)).outcome is outcome


async def test_a_check_that_fails_in_any_way(stand: Stand) -> None:
    """The health has the error of a check. An unexpected error is named by its type only."""
    for error, text in ((ProviderError("away"), "away"), (ValueError("a secret"), "failed unexpectedly (ValueError)")):
        stand.provider.next = error
        with pytest.raises(ProviderError, match=text.replace("(", r"\(").replace(")", r"\)")):
            await stand.guarded.check(deadline_s=DEADLINE_S)
        assert stand.guarded.health.error.endswith(text)
    stand.provider.next = Enrolment.UNKNOWN
    assert await stand.guarded.check(deadline_s=DEADLINE_S) == "the provider answers"
    assert stand.guarded.health == Health(1000)


async def test_a_successful_check_admits_calls_at_once(stand: Stand) -> None:
    """The circuit does not stay open for the rest of its time."""
    await stand.open()
    await stand.fails(match="circuit open")
    stand.provider.next = Enrolment.ENROLLED
    await stand.guarded.check(deadline_s=DEADLINE_S)
    assert (await stand.start()).outcome is Outcome.APPROVED


async def test_a_refused_call_takes_no_time(stand: Stand) -> None:
    """A call that is not made counts with no duration."""
    await stand.open()
    await stand.fails(match="circuit open")
    assert stand.meter.refused_s == [0.0]


async def test_a_denial_ends_the_measured_time(stand: Stand) -> None:
    """A login that the user denies as not the own one counts as answered."""
    await stand.start(Answer(Outcome.WAITING, handle="h1"))
    stand.provider.next = Answer(Outcome.NOT_ME)
    await stand.guarded.poll("h1", deadline_s=DEADLINE_S)
    assert stand.guarded.p95_s() is not None

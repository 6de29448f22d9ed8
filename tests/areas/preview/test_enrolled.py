"""Tests of enrolments for the preview: the provider is asked about a few users at once, for a limited time."""

from typing import cast

import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.forecast import Enrolments, Standing
from sallyport.areas.mfa.circuit import Attached, Guarded
from sallyport.areas.mfa.host import Fields, Host
from sallyport.areas.mfa.provider import Enrolment, ProviderError
from sallyport.areas.mfa.service import Providers
from sallyport.areas.preview.enrolled import ASK_S, AT_ONCE, SURVEY_S, SecondFactors
from sallyport.metrics import MfaMetrics
from tests.areas.domains.test_domain import make
from tests.areas.preview.conftest import Scripted, ScriptedFields


class Slow(Scripted):
    """A provider that takes two seconds for each user.

    busy: the current number of concurrent requests. most: the highest number so far.
    """

    def __init__(self, fields: Fields, host: Host) -> None:
        super().__init__(fields, host)
        self.busy = self.most = 0

    async def enrolled(self, user: str) -> Enrolment:
        self.busy += 1
        self.most = max(self.most, self.busy)
        await trio.sleep(2)
        self.busy -= 1
        return await super().enrolled(user)


async def test_the_time_is_bounded(autojump_clock: MockClock) -> None:
    """The enrolments of users with an answer in time are known, and those of the others are not.

    A second preview within a minute sends no request.
    """
    slow = Slow(ScriptedFields(enrolled="u0,u1"), cast(Host, None))
    second = Standing(Attached("slow", "slow/1", Guarded(slow, MfaMetrics(CollectorRegistry())), 60.0), Reason.NONE)
    factors = SecondFactors(cast(Providers, None), Enrolments(trio.current_time))
    domain: Domain = make(1, "corp")
    names = [f"u{number}" for number in range(10)]
    began = trio.current_time()
    assert factors.question_limit(domain, second) == 50
    await factors.ask(domain, second, [(name, name) for name in names])
    assert trio.current_time() - began == ASK_S
    assert slow.most == AT_ONCE
    known = [factors.known(domain, second, name) for name in names]
    assert known == [Reason.ASKED, Reason.ASKED, Reason.NOT_ENROLLED, Reason.NOT_ENROLLED, *[None] * 6]
    assert factors.question_limit(domain, second) == 0
    await trio.sleep(60)
    assert factors.question_limit(domain, second) == 50


class Busy(Slow):
    """A provider that asks for a pause of five seconds at the first request about each user."""

    async def enrolled(self, user: str) -> Enrolment:
        found = await super().enrolled(user)
        if self.calls.count(user) == 1:
            raise ProviderError("busy", retry_after_s=5, limited=True)
        return found


async def test_a_survey_waits_for_a_rate_limit(autojump_clock: MockClock) -> None:
    """If a rate limit delays the answer about a user, the user is asked about again.

    Each preview ends in time, and the next one continues.
    """
    Scripted.calls.clear()
    busy = Busy(ScriptedFields(enrolled="u0,u1,u2,u3"), cast(Host, None))
    guarded = Guarded(busy, MfaMetrics(CollectorRegistry()), now=trio.current_time)
    second = Standing(Attached("busy", "busy/1", guarded, 60.0), Reason.NONE)
    factors = SecondFactors(cast(Providers, None), Enrolments(trio.current_time))
    domain: Domain = make(1, "corp")
    left = [(f"u{number}", f"u{number}") for number in range(4)]
    rounds = 0
    while left and rounds < 9:
        began = trio.current_time()
        await factors.survey(domain, second, left)
        assert trio.current_time() - began <= SURVEY_S
        left = [each for each in left if factors.is_open(domain, second, each[0])]
        rounds += 1
    assert 1 < rounds < 9
    assert {factors.known(domain, second, f"u{number}") for number in range(4)} == {Reason.ASKED}

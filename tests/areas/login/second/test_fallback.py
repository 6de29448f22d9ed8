"""The outcomes that the fallback covers, and those that it never covers."""

import pytest
import structlog
import trio
from trio.testing import MockClock

from sallyport.areas.domains.domain import Fallback
from sallyport.areas.login.second.calls import POLL_AGAIN_S
from sallyport.areas.login.second.conversation import NotAsked
from sallyport.areas.mfa.circuit import FAILURES
from sallyport.areas.mfa.provider import Outcome, ProviderError
from sallyport.areas.policy.rules.bodies import RuleFields
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.login.second.scripted import Script, attached, fall_back_to, hurried
from tests.packets import pap
from tests.waiting import until

LATEST = 1.25
"""A provider is asked again after its pause, or up to a quarter of it later."""
BOTH = pytest.mark.parametrize("fallback", Fallback)


async def ended(listener: FakeListener, typed: str = "hello", user: str = "ann") -> tuple[str, str, str, str, str]:
    """Return decision, applied decision, decision of enforce mode, reason and factors."""
    login = listener.login(pap(user, typed))
    decision = await listener.decide(login)
    return decision.decision, decision.applied, decision.would_have_been, decision.reason, login.factor


def verdict(fallback: Fallback) -> tuple[str, str, str]:
    """Return the verdicts of a login that the fallback covers."""
    word = "accept" if fallback is Fallback.ALLOW else "reject"
    return word, word, ""


@BOTH
async def test_unreachable_then_open(listener: FakeListener, areas: Areas, script: Script, fallback: Fallback) -> None:
    """Five failures open the circuit, and later logins make no call. A login with a code after the password ends
    alike."""
    await fall_back_to(areas, fallback)
    script.fails = ProviderError("away")
    await areas.add_user(areas.domain, "bob", b"hello")
    for number in range(FAILURES):
        row = await ended(listener, "hello" if number % 2 else "hello123456", user="ann" if number < 3 else "bob")
        assert row[:3] == verdict(fallback)
        assert row[3].startswith("provider unreachable")
        assert row[4] == "local+scripted"
    asked = len(script.started) + len(script.verified)  # the look-up before the check of a code may have failed too
    assert FAILURES - 2 <= asked <= FAILURES
    assert await ended(listener) == (*verdict(fallback), "provider unreachable, circuit open", "local+scripted")
    assert len(script.started) + len(script.verified) == asked
    assert attached(areas).provider.is_open


async def test_a_call_that_fails_is_logged(listener: FakeListener, areas: Areas, script: Script) -> None:
    """The log event names the domain, the provider and the error."""
    script.fails = ProviderError("away")
    with structlog.testing.capture_logs() as logs:
        await ended(listener)
    assert [each for each in logs if each["event"] == "mfa_provider_unreachable"] == [
        {
            "event": "mfa_provider_unreachable",
            "log_level": "warning",
            "domain": areas.domains.table.present(areas.domain).name,
            "provider": "scripted",
            "error": "away",
        }
    ]


@BOTH
async def test_any_exception_of_a_plug_in(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback
) -> None:
    """Any exception of a provider makes it unreachable."""
    await fall_back_to(areas, fallback)
    script.fails = KeyError("a plug-in's own")
    assert await ended(listener) == (*verdict(fallback), "provider unreachable", "local+scripted")


@BOTH
async def test_an_answer_that_makes_no_sense(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback
) -> None:
    """An answer that does not fit the call, as a wrong code from `start`, makes the provider unreachable."""
    await fall_back_to(areas, fallback)
    script.begins = Outcome.WRONG_CODE
    assert await ended(listener) == (*verdict(fallback), "provider unreachable", "local+scripted")


@BOTH
async def test_no_provider(listener: FakeListener, areas: Areas, script: Script, fallback: Fallback) -> None:
    """The fallback applies at once if the domain has no provider."""
    await fall_back_to(areas, fallback)
    await areas.providers.delete(areas.domain)
    assert await ended(listener) == (*verdict(fallback), "no provider", "local")


@BOTH
@pytest.mark.parametrize(
    "damage",
    [
        "update mfa_providers set fields = cast('' as bytea)",
        "update mfa_providers set fields = substr(fields, 1, length(fields) - 1)",
        "update mfa_providers set provider = 'totp'",
        "update mfa_providers set provider = 'a plug-in that is gone'",
    ],
)
async def test_unreadable(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback, damage: str
) -> None:
    """An unreadable configuration is an outage. No other provider is used, not even one without settings."""
    await fall_back_to(areas, fallback)
    await areas.store.write(lambda tx: tx.execute(damage))
    await areas.configuration.reload()
    assert await ended(listener) == (*verdict(fallback), "provider configuration unreadable", "local")
    assert await ended(listener, "hello123456") == ("reject", "reject", "", "wrong password", "local")
    assert not script.disturbed
    await script.attach(areas)
    script.begins = Outcome.APPROVED
    assert (await ended(listener))[1] == "accept"


@BOTH
async def test_another_master_key(listener: FakeListener, areas: Areas, script: Script, fallback: Fallback) -> None:
    """A configuration that was sealed with another master key is unreadable."""
    await fall_back_to(areas, fallback)
    other = Areas(areas.store, areas.clock, key=bytes(31) + b"\1")
    row = await areas.store.read(lambda tx: tx.value(int, "select domain_id from mfa_providers"))
    sealed = other.vault.seal(b"{}", f"mfa_providers/{row}/scripted")
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set fields = :f", f=sealed))
    await areas.configuration.reload()
    assert (await ended(listener))[3] == "provider configuration unreadable"


@BOTH
@pytest.mark.parametrize(
    ("begins", "typed", "reason"),
    [
        (Outcome.DENIED, "hello", "second factor denied"),
        (Outcome.NOT_ENROLLED, "hello", "not enrolled"),
        (Outcome.APPROVED, "hello000000", "wrong code"),
        (Outcome.APPROVED, "wrong", "wrong password"),
    ],
)
async def test_the_fallback_does_not_cover_refusals(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback, begins: Outcome, typed: str, reason: str
) -> None:
    """The fallback does not cover a wrong first factor, a denied second factor, a missing enrolment and a wrong
    code."""
    await fall_back_to(areas, fallback)
    script.begins = begins
    factor = "local" if reason == "wrong password" else "local+scripted"
    assert await ended(listener, typed) == ("reject", "reject", "", reason, factor)


async def test_three_refused_prompts_are_reported(listener: FakeListener, areas: Areas, script: Script) -> None:
    """The third prompt within an hour that a user refuses is counted. Approved prompts do not count."""
    name = "sallyport_mfa_repeated_refusals_total"
    for outcome, expected in zip(
        (Outcome.DENIED, Outcome.APPROVED, Outcome.DENIED, Outcome.DENIED), (0, 0, 0, 1), strict=True
    ):
        script.begins = outcome
        await ended(listener)
        assert areas.sample(name) == expected


@BOTH
async def test_a_block_is_a_block(listener: FakeListener, areas: Areas, script: Script, fallback: Fallback) -> None:
    """A rule blocks or allows without a second factor, also without a provider."""
    await fall_back_to(areas, fallback)
    await areas.providers.delete(areas.domain)
    rule = await areas.rules.add(
        areas.domain, RuleFields.model_validate({"name": "r", "action": "block", "everyone": True})
    )
    assert (await ended(listener))[1:4] == ("reject", "", "blocked by rule")
    await areas.rules.update(areas.domain, rule, RuleFields(action="allow", everyone=True))
    assert await ended(listener) == ("accept", "accept", "", "", "local")
    assert not script.disturbed


ATTRIBUTES = {
    "name": "r", "action": "mfa_required", "vlan": 20, "replyAttributes": [{"name": "Class", "value": "staff"}],
}  # fmt: skip


@pytest.mark.parametrize("begins", [Outcome.APPROVED, None])
async def test_the_attributes_of_an_accept(
    listener: FakeListener, areas: Areas, script: Script, begins: Outcome | None
) -> None:
    """Class and VLAN are the same with a second factor, without one, and with a fallback that allows."""
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate(ATTRIBUTES))
    (kept,) = areas.rules.all_of(areas.domain)
    assert b"staff" in kept.attributes
    await fall_back_to(areas, Fallback.ALLOW)
    if begins is None:
        script.fails = ProviderError("away")
    else:
        script.begins = begins
    for action in ("mfa_required", "allow"):
        await areas.rules.update(areas.domain, rule, RuleFields(action=action, everyone=action == "allow"))
        login = listener.login(pap("ann", "hello"))
        assert (await listener.decide(login)).applied == "accept"
        assert login.attributes == kept.attributes


class Busy:
    """Makes the provider busy (HTTP 429) for its next calls: `times` calls, for `for_s` seconds each."""

    def __init__(self, script: Script, times: int, for_s: float) -> None:
        self.script, self.times, self.for_s = script, times, for_s
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise ProviderError("rate limit reached (HTTP 429)", retry_after_s=self.for_s, limited=True)


@pytest.mark.parametrize("typed", ["hello", "hello123456"])
async def test_a_busy_provider_is_waited_for(
    listener: FakeListener, areas: Areas, script: Script, mock_clock: MockClock, typed: str
) -> None:
    """A busy provider is asked again after Retry-After (HTTP 429), within the login's time. The circuit stays closed,
    however many logins meet a busy provider."""
    script.begins = Outcome.APPROVED
    script.busy = busy = Busy(script, FAILURES + 1, 7.0)
    began = trio.current_time()
    async with hurried(mock_clock, lambda: min(busy.calls, FAILURES + 1), 7.0 * LATEST):
        assert (await ended(listener, typed))[:2] == ("accept", "accept")
    assert busy.calls >= FAILURES + 2
    assert 7.0 * (FAILURES + 1) <= trio.current_time() - began < 60
    assert not attached(areas).provider.is_open


@BOTH
async def test_a_provider_that_stays_busy(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback
) -> None:
    """A provider that stays busy cannot be asked, and the fallback decides. The circuit stays closed."""
    await fall_back_to(areas, fallback)
    script.busy = Busy(script, 10**6, 3600.0)
    expected = (*verdict(fallback), "the provider's rate limit is reached", "local+scripted")
    await areas.add_user(areas.domain, "bob", b"hello")
    for number in range(FAILURES + 1):
        began = trio.current_time()
        assert await ended(listener, user="ann" if number % 2 else "bob") == expected
        assert trio.current_time() - began < 5
    assert not attached(areas).provider.is_open


@BOTH
async def test_a_provider_that_is_unavailable_for_a_while(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback
) -> None:
    """A provider that answers HTTP 503 with Retry-After is unreachable, also for logins without a call in that time."""
    await fall_back_to(areas, fallback)
    script.fails = ProviderError("answered HTTP 503", retry_after_s=3600.0)
    for _ in range(2):
        assert await ended(listener) == (*verdict(fallback), "provider unreachable", "local+scripted")


@BOTH
async def test_a_prompt_that_a_rate_limit_outlasts(
    listener: FakeListener, areas: Areas, script: Script, mock_clock: MockClock, fallback: Fallback
) -> None:
    """A prompt whose answer a rate limit hides counts as not answered. The user was asked, so that no fallback covers
    it. The prompt is cancelled."""
    await fall_back_to(areas, fallback)
    script.busy_polls = busy = Busy(script, 10**6, 3600.0)
    refused = (*verdict(Fallback.DENY), "second factor not answered in time", "local+scripted")
    async with hurried(mock_clock, lambda: busy.calls, POLL_AGAIN_S):
        assert await ended(listener) == refused
    assert len(script.started) == 1


@BOTH
async def test_a_login_that_waits_for_its_call_until_its_end(
    listener: FakeListener, areas: Areas, script: Script, mock_clock: MockClock, fallback: Fallback
) -> None:
    """A login gets no answer if the calls of other logins leave no room for its call within timeoutSeconds. No fallback
    decides it, and the circuit stays closed."""
    mock_clock.rate = 1
    await fall_back_to(areas, fallback)
    room = attached(areas).provider.room
    while room.value:
        room.acquire_nowait()
    async with trio.open_nursery() as nursery:

        async def unanswered() -> None:
            with pytest.raises(NotAsked):
                await ended(listener)

        nursery.start_soon(unanswered)
        await until(lambda: room.statistics().tasks_waiting == 1)
        mock_clock.jump(60)
    assert not script.started
    assert not attached(areas).provider.is_open
    room.release()
    script.begins = Outcome.APPROVED
    assert (await ended(listener))[:2] == ("accept", "accept")


@BOTH
async def test_a_provider_that_takes_no_more_codes(
    listener: FakeListener, areas: Areas, script: Script, fallback: Fallback
) -> None:
    """A rate limit for one user's codes is not covered by the fallback, so that guessing is of no use. Other users are
    asked as before."""
    await fall_back_to(areas, fallback)
    script.busy = Busy(script, 1, 3600.0)
    assert await ended(listener, "hello000000") == (
        *verdict(Fallback.DENY),
        "the provider takes no more codes for now",
        "local+scripted",
    )
    await areas.add_user(areas.domain, "bob", b"hello")
    login = listener.login(pap("bob", "hello123456"))
    assert (await listener.decide(login)).applied == "accept"


async def test_a_provider_that_is_busy_while_a_user_is_asked(
    listener: FakeListener, script: Script, mock_clock: MockClock
) -> None:
    """If the provider is busy while a user is asked, the prompt stays, and its answer counts when the provider reports
    it."""
    script.busy_polls = busy = Busy(script, 8, 3.0)
    async with hurried(mock_clock, lambda: busy.calls, 3.0 * LATEST), trio.open_nursery() as nursery:
        login = listener.login(pap("ann", "hello"))

        async def approve() -> None:
            await until(lambda: bool(script.started))
            script.answer(0, Outcome.APPROVED)

        nursery.start_soon(approve)
        decision = await listener.decide(login)
    assert decision.applied == "accept"

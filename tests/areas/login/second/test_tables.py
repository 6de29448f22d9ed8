"""The tables of the second factor: each tenant has a share, and a slow provider delays its own tenant alone."""

from typing import cast

import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.forecast import Enrolments
from sallyport.areas.login.second.prompts import A_MINUTE, CODES_A_MINUTE, HOUR_S, REFUSED, Prompts, Refusals
from sallyport.areas.login.second.session import LIFETIME_US, ChallengeKind, Session, read, write
from sallyport.areas.mfa.circuit import Attached, Guarded
from sallyport.areas.mfa.host import Host
from sallyport.areas.mfa.provider import Enrolment, Question
from sallyport.base.clock import SECOND
from sallyport.metrics import MfaMetrics
from tests.areas import Areas
from tests.areas.preview.conftest import Scripted, ScriptedFields

ANN = (1, "ann")
FIRST_TENANT, SECOND_TENANT = 1, 2


def test_prompts_of_another_tenant_leave_the_rates() -> None:
    """A user is not prompted a fifth time within a minute, however many users of another tenant are."""
    prompts = Prompts(lambda: 0.0, max_users=20)

    def ask(user: tuple[int, str], tenant_id: int) -> bool:
        if not prompts.begin(user, tenant_id):
            return False
        prompts.end(user, 0.0)
        return True

    assert all(ask(ANN, FIRST_TENANT) for _ in range(A_MINUTE))
    assert all(ask((2, f"user{number}"), SECOND_TENANT) for number in range(100))
    assert not ask(ANN, FIRST_TENANT)


def test_a_code_prompts_no_user() -> None:
    """Logins with a code after the password have a higher limit, since a code may be mistyped."""
    prompts = Prompts(lambda: 0.0)
    for _ in range(A_MINUTE):
        assert prompts.begin(ANN, FIRST_TENANT)
        prompts.end(ANN, 0.0)
    assert not prompts.begin(ANN, FIRST_TENANT)
    for _ in range(CODES_A_MINUTE - A_MINUTE):
        assert prompts.begin(ANN, FIRST_TENANT, has_code=True)
        prompts.end(ANN, 0.0)
    assert not prompts.begin(ANN, FIRST_TENANT, has_code=True)


def test_a_prompt_that_was_not_sent_does_not_count() -> None:
    """A login that is refused during a pause takes no prompt of the minute away."""
    prompts = Prompts(lambda: 0.0)
    for _ in range(2 * A_MINUTE):
        assert prompts.begin(ANN, FIRST_TENANT)
        prompts.not_sent(ANN)
        prompts.end(ANN, 0.0)
    assert len(prompts) == 0


def test_an_answer_excuses_the_prompts_before_it() -> None:
    """A user who answers the newest prompt has not ignored the other one, which a device has given up. A prompt that
    begins after the answer is not excused."""
    now = 0.0
    prompts = Prompts(lambda: now)
    assert prompts.begin(ANN, FIRST_TENANT) and prompts.begin(ANN, FIRST_TENANT)
    now = 20.0
    prompts.answered(ANN)
    assert prompts.end(ANN, 10.0)
    now = 30.0
    assert prompts.begin(ANN, FIRST_TENANT)
    assert prompts.end(ANN, 0.0)
    assert not prompts.end(ANN, 30.0)


def test_prompts_are_forgotten_after_a_minute() -> None:
    """The table holds the users of the last minute alone."""
    now = 0.0
    prompts = Prompts(lambda: now)
    for number in range(1000):
        now = number
        assert prompts.begin((1, f"user{number}"), FIRST_TENANT)
    assert len(prompts) == 60


def test_refusals_within_an_hour_are_reported() -> None:
    """The third refused prompt of a user is reported, and then the third one after it."""
    refusals = Refusals(lambda: 0.0)
    reports = [refusals.note(ANN, FIRST_TENANT) for _ in range(2 * REFUSED)]
    assert reports == [False, False, True] * 2


def test_refusals_of_other_users_and_other_hours_are_not_added() -> None:
    """A user's refusals of more than an hour ago, and those of other users, do not count."""
    now = 0.0
    refusals = Refusals(lambda: now)
    for number in range(2 * REFUSED):
        now = number * HOUR_S / 2
        assert not refusals.note(ANN, FIRST_TENANT)
        assert not refusals.note((1, f"user{number}"), FIRST_TENANT)


def test_refusals_of_another_tenant_are_kept() -> None:
    """A user's refusals stay, however many users of another tenant refuse prompts in its domains."""
    refusals = Refusals(lambda: 0.0, max_users=20)
    for _ in range(REFUSED - 1):
        assert not refusals.note(ANN, FIRST_TENANT)
    for number in range(100):
        assert not refusals.note((number, f"user{number}"), SECOND_TENANT)
    assert refusals.note(ANN, FIRST_TENANT)


async def test_enrolments_of_another_tenant_are_kept() -> None:
    """A user's known enrolment stays, however many users of another tenant are looked up."""
    enrolments = Enrolments(trio.current_time, max_known=20)
    attached = Attached("scripted", "scripted/1", _provider(Scripted), 60.0)
    await enrolments.find_out(attached, FIRST_TENANT, ANN, "ann")
    for number in range(100):
        await enrolments.find_out(attached, SECOND_TENANT, (2, f"user{number}"), f"user{number}")
    assert enrolments.known(attached, ANN) is Reason.ASKED


async def test_a_slow_provider_delays_its_own_tenant_alone(autojump_clock: MockClock) -> None:
    """Look-ups of one tenant wait for each other, and those of another tenant do not wait for them."""
    enrolments = Enrolments(trio.current_time)
    slow = Attached("slow", "slow/1", _provider(Slow), 60.0)
    quick = Attached("scripted", "scripted/1", _provider(Scripted), 60.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(enrolments.run)
        for number in range(2000):
            enrolments.look_up(slow, SECOND_TENANT, (2, f"user{number}"), f"user{number}")
        began = trio.current_time()
        assert await enrolments.learn(quick, FIRST_TENANT, ANN, "ann") is Reason.ASKED
        assert trio.current_time() - began < 1
        nursery.cancel_scope.cancel()


async def test_challenges_of_another_tenant_are_remembered(areas: Areas) -> None:
    """A pending challenge is answered without a read of the store, and one that ended stays ended."""
    challenges = Challenges(areas.store, areas.vault, areas.clock, max_remembered=20)
    waits, over = _session("waits", areas), _session("over", areas)
    challenges.sent(waits, FIRST_TENANT)
    challenges.ended(over, FIRST_TENANT)
    for number in range(100):
        challenges.sent(_session(f"other{number}", areas), SECOND_TENANT)
        challenges.ended(_session(f"ended{number}", areas), SECOND_TENANT)
    assert len(challenges) == 40
    assert await challenges.find("waits") is waits
    assert await challenges.find("over") is None
    assert await challenges.find("other0") is None
    areas.clock.pass_by(LIFETIME_US / SECOND)
    await challenges.purge(areas.clock())
    assert len(challenges) == 0


class Slow(Scripted):
    """A provider that takes ten seconds for a look-up."""

    async def enrolled(self, user: str) -> Enrolment:
        await trio.sleep(10)
        return await super().enrolled(user)


def _provider(kind: type[Scripted]) -> Guarded:
    return Guarded(kind(ScriptedFields(enrolled="ann"), cast(Host, None)), MfaMetrics(CollectorRegistry()))


async def test_a_newer_node_may_store_more(areas: Areas) -> None:
    """In a rolling upgrade, a challenge of a newer node has fields that this node does not know. It is read."""
    known = _session("0" * 32, areas)
    await areas.store.write(lambda tx: write(tx, known))
    before = await areas.store.read(lambda tx: read(tx, known.id))
    stored = await areas.store.read(lambda tx: tx.value(str, "select session from challenges")) or ""
    newer = stored.replace('{"question": {', '{"new": 1, "question": {"newer": [], ')
    assert newer != stored
    await areas.store.write(lambda tx: tx.execute("update challenges set session = :newer", newer=newer))
    assert before is not None
    assert await areas.store.read(lambda tx: read(tx, known.id)) == before


def _session(name: str, areas: Areas) -> Session:
    expires_at = areas.clock() + LIFETIME_US
    question = Question(name, areas.domain, "corp", "ann", "", "", "", expires_at)
    return Session(question, "", 1, 1, "", ChallengeKind.CODE, "", 1, 0, expires_at)

"""Tests of the prompt memory of a provider: each challenge has one prompt."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.mfa.host import KEPT_S, Once
from sallyport.areas.mfa.provider import Answer, Outcome, ProviderError


class Prompts:
    """A counter of the prompts that begin.

    `go`: the event that lets them end.
    """

    def __init__(self, outcome: Outcome = Outcome.WAITING) -> None:
        self.begun = 0
        self.outcome = outcome
        self.go = trio.Event()

    async def begin(self) -> Answer:
        """Send a prompt."""
        self.begun += 1
        await self.go.wait()
        return Answer(self.outcome, handle="" if self.outcome is Outcome.NOT_ENROLLED else str(self.begun))


async def test_calls_for_a_challenge_share_its_prompt() -> None:
    """A call that arrives while the prompt is sent gets the same answer as the first call. A later call gets it too."""
    once, prompts, answers = Once(), Prompts(), list[Answer]()

    async def start() -> None:
        answers.append(await once.start("a", prompts.begin))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(start)
        await wait_all_tasks_blocked()
        prompts.go.set()
    await start()
    assert [answer.handle for answer in answers] == ["1"] * 4
    assert (await once.start("b", prompts.begin)).handle == "2"


async def test_a_waiting_call_replaces_a_cancelled_one() -> None:
    """If the first call is cancelled, one of the waiting calls sends the prompt again."""
    once, prompts, answers = Once(), Prompts(), list[Answer]()

    async def start() -> None:
        answers.append(await once.start("a", prompts.begin))

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as first:
                first.start_soon(start)
                await wait_all_tasks_blocked()
                nursery.start_soon(start)
                nursery.start_soon(start)
                await wait_all_tasks_blocked()
                scope.cancel()
        await wait_all_tasks_blocked()
        prompts.go.set()
    assert [answer.handle for answer in answers] == ["2", "2"]


async def test_failures_and_refusals_are_not_kept() -> None:
    """If the answer was not a prompt, the next call asks the provider again."""

    async def fail() -> Answer:
        raise ProviderError("away")

    once, refused = Once(), Prompts(Outcome.NOT_ENROLLED)
    refused.go.set()
    with pytest.raises(ProviderError):
        await once.start("a", fail)
    for _ in range(2):
        await once.start("a", refused.begin)
    assert refused.begun == 2


async def test_the_memory_is_bounded() -> None:
    """The oldest challenge is evicted first."""
    once, prompts = Once(remembered=2), Prompts()
    prompts.go.set()
    for challenge in "abcbc":
        await once.start(challenge, prompts.begin)
    assert prompts.begun == 3
    await once.start("a", prompts.begin)
    assert prompts.begun == 4


async def test_an_answer_is_kept_for_a_time(autojump_clock: MockClock) -> None:
    """A handle may be a secret. When it has expired, it is deleted from memory as soon as the next challenge begins."""
    once, prompts = Once(), Prompts()
    prompts.go.set()
    await once.start("a", prompts.begin)
    await trio.sleep(KEPT_S)
    await once.start("b", prompts.begin)
    assert len(once._answers) == 1
    await once.start("a", prompts.begin)
    assert prompts.begun == 3

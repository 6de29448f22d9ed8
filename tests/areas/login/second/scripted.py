"""A provider whose answers a test gives: in the process, without a network.

    script = Script()
    await script.attach(areas)
    script.begins = Outcome.CODE
    ...
    script.answer(0, Outcome.APPROVED)

A push waits until its answer is given; a code is right if it is among `right`, once.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar

import trio
from pydantic import SecretStr
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.host import ConfiguredProvider, Fields, Host
from sallyport.areas.mfa.provider import NO_WEB, Answer, Code, Enrolled, Enrolment, Outcome, Question, Strength
from tests.areas import Areas

NAME = "scripted"


class ScriptedFields(Fields):
    """Settings of the scripted provider. The key has no effect."""

    key: SecretStr = SecretStr("a key")


@dataclass
class Script:
    """The answers of the provider, and the record of its calls. begins: answer of `start` (WAITING: a push); None:
    never. fails: raised by every call; busy: called by calls that begin or check a code, to raise; busy_polls: the same
    for calls that wait. right: right codes, each once. gate: what `verify` waits for; slow: what `start` waits for.
    text: beside an answer. name: the name of the provider. strength: of each approval. strongest, web_problem: of the
    provider.
    """

    begins: Outcome | None = Outcome.WAITING
    enrolment: Enrolment = Enrolment.ENROLLED
    fails: Exception | None = None
    busy: Callable[[], None] = lambda: None
    busy_polls: Callable[[], None] = lambda: None
    right: set[str] = field(default_factory=lambda: {"123456", "12345678"})
    gate: trio.Event | None = None
    slow: trio.Event | None = None
    text: str = ""
    again_s: float = 0.0
    takes_codes: bool = True
    name: str = NAME
    strength: Strength = Strength.ANY
    strongest: Strength = Strength.ANY
    web_problem: str = NO_WEB
    started: list[Question] = field(default_factory=list)
    verified: list[tuple[str, str]] = field(default_factory=list)
    polled: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    closed: int = 0
    _given: dict[str, Outcome] = field(default_factory=dict)
    _news: trio.Event = field(default_factory=trio.Event)

    async def attach(self, areas: Areas, *, timeout_s: int = 60, mode: Mode = Mode.ENFORCE) -> None:
        """Make the script the provider of the domain, and set the domain's mode."""
        areas.kinds[self.name] = provider(self)
        areas.clock.pass_by(0.001)
        await areas.providers.set(areas.domain, self.name, {}, timeout_s)
        await areas.domains.set_mode([areas.domain], mode)

    async def attach_beside(self, areas: Areas) -> None:
        """Make the script a provider beside the default one of the domain."""
        areas.kinds[self.name] = provider(self)
        areas.clock.pass_by(0.001)
        await areas.providers.set(areas.domain, self.name, {}, 60, beside=True)

    def answer(self, number: int, outcome: Outcome) -> None:
        """Answer the prompt with that number, as the user would."""
        self._given[self.started[number].challenge_id] = outcome
        self._news.set()
        self._news = trio.Event()

    async def wait_for(self, handle: str) -> Outcome:
        """Wait for the answer to a prompt."""
        while handle not in self._given:
            await self._news.wait()
        return self._given[handle]

    @property
    def disturbed(self) -> bool:
        """Return whether any user was prompted or any code checked."""
        return bool(self.started or self.verified or self.polled)


def provider(script: Script) -> type[ConfiguredProvider]:
    """Return a provider class for a script."""

    class Scripted:
        """Says what the script says."""

        name: ClassVar[str] = script.name
        fields: ClassVar[type[Fields]] = ScriptedFields
        asks_for_codes: ClassVar[bool] = script.takes_codes
        strongest: ClassVar[Strength] = script.strongest
        web_problem: ClassVar[str] = script.web_problem

        def __init__(self, fields: Fields, host: Host) -> None:
            assert isinstance(fields, ScriptedFields)

        async def enrolled(self, user: str) -> Enrolled:
            """Return the scripted enrolment."""
            script.looked_up.append(user)
            await trio.lowlevel.checkpoint()
            _may_fail()
            return Enrolled(script.enrolment, script.strength)

        async def start(self, question: Question) -> Answer:
            """Prompt."""
            script.busy()
            script.started.append(question)
            _may_fail()
            if script.begins is None:
                await trio.sleep_forever()
            if script.slow is not None:
                await script.slow.wait()
            assert script.begins is not None
            return Answer(script.begins, question.challenge_id, script.text, again_s=script.again_s)

        async def poll(self, handle: str) -> Answer:
            """Wait for the user."""
            script.polled.append(handle)
            script.busy_polls()
            _may_fail()
            return Answer(await script.wait_for(handle), handle, strength=script.strength)

        async def verify(self, question: Question, code: Code, handle: str) -> Answer:
            """Check a code; a right one is spent."""
            script.busy()
            script.verified.append(("CHAP" if code.text is None else code.text, handle))
            if script.gate is not None:
                await script.gate.wait()
            _may_fail()
            right = [each for each in script.right if code.matches(each)]
            script.right.difference_update(right)
            outcome = Outcome.APPROVED if right else Outcome.WRONG_CODE
            return Answer(outcome, text=script.text, strength=script.strength)

        async def cancel(self, handle: str) -> None:
            """Record the call."""
            script.cancelled.append(handle)

        async def aclose(self) -> None:
            """Record the call."""
            script.closed += 1

    def _may_fail() -> None:
        if script.fails is not None:
            raise script.fails

    return Scripted


@asynccontextmanager
async def hurried(clock: MockClock, calls: Callable[[], int], pause_s: float) -> AsyncIterator[None]:
    """Move the clock over the pause after each call of a provider. calls: how many there were. pause_s: the longest
    pause.
    """
    clock.rate = 1

    async def hurry() -> None:
        seen = 0
        while True:
            if calls() > seen:
                seen += 1
                await wait_all_tasks_blocked(0.005)
                clock.jump(pause_s)
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hurry)
        yield
        nursery.cancel_scope.cancel()


async def fall_back_to(areas: Areas, action: Fallback) -> None:
    """Set the domain's fallbackAction, in enforce mode."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, action)


def attached(areas: Areas) -> Attached:
    """Return the domain's provider."""
    found = areas.providers.of(areas.domain)
    assert isinstance(found, Attached)
    return found

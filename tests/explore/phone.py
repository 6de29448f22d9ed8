"""The provider and its user: one phone for all nodes."""

from dataclasses import dataclass, field

import trio

from sallyport.areas.mfa.provider import NO_WEB, Answer, Code, Outcome, ProviderError, Question, Strength
from tests.explore.store import FAILS, Park

RIGHT_CODE = "123456"
LATE, CROSSING = "late", "crossing"
"""The names that the device gives itself in a request that was already answered, and in one that was on its way when
the Accept was sent."""


@dataclass
class Phone:
    """The prompts that the provider has sent, by challenge id, and the answers of the user.

    open: the prompts whose result no login has used, and that have not ended. over: the prompts that are no longer
    pending, because they were sent before the last time limit or denied on a page; a late answer of the user may still
    arrive. asked: how often each prompt was sent: again only if a node was lost before it has stored the handle. spent:
    the challenges whose code was right. broken: takes the promises that are broken.
    """

    asks_for_code: bool
    broken: list[str]
    asked: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Outcome] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    over: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)

    def prompt(self, challenge_id: str, device: str) -> None:
        """Send a prompt. device: the name of the device in the request that has caused it."""
        if challenge_id not in self.asked:
            if device == LATE:
                self.broken.append("a late retransmission has prompted the user")
            if device == CROSSING:
                self.broken.append("a request that crossed the Accept has prompted the user")
            if self.open - self.over:
                self.broken.append("a second prompt while one is pending")
            self.open.add(challenge_id)
        self.asked[challenge_id] = self.asked.get(challenge_id, 0) + 1

    def answer(self, challenge_id: str, outcome: Outcome) -> None:
        """Answer a prompt, as the user would."""
        self.answers[challenge_id] = outcome
        if outcome is not Outcome.APPROVED:
            self.open.discard(challenge_id)


class Provider:
    """The provider as one node calls it. It has the interface of `Guarded`."""

    is_open = False
    only_codes = False
    asks_for_codes = True
    strongest = Strength.ANY
    web_problem = NO_WEB

    def __init__(self, phone: Phone, park: Park) -> None:
        self._phone = phone
        self._park = park
        self.room = trio.Semaphore(8)

    async def start(self, question: Question, *, deadline_s: float) -> Answer:
        """Send a prompt, or ask for a code."""
        error = await self._park("provider.start", question.challenge_id)
        if error != FAILS:
            self._phone.prompt(question.challenge_id, question.device)
        if error:
            self._phone.open.discard(question.challenge_id)  # no node has a handle, so that no login can use it
            raise ProviderError(error)
        if self._phone.asks_for_code:
            return Answer(Outcome.CODE, question.challenge_id)
        return Answer(Outcome.WAITING, question.challenge_id, again_s=0)

    async def poll(self, handle: str, *, deadline_s: float) -> Answer:
        """Wait for the answer of the user. The step is possible as soon as there is an answer."""
        if error := await self._park("provider.poll", handle):
            raise ProviderError(error)
        return Answer(self._phone.answers[handle], handle)

    async def verify(self, question: Question, code: Code, handle: str, *, deadline_s: float) -> Answer:
        """Check a code. The right code is right once."""
        error = await self._park("provider.verify", (question.challenge_id, code.text))
        if error == FAILS:
            raise ProviderError(error)
        if not code.matches(RIGHT_CODE) or self._phone.spent:
            return Answer(Outcome.WRONG_CODE, handle)
        self._phone.spent.add(question.challenge_id)
        self._phone.answers[question.challenge_id] = Outcome.APPROVED
        if error:
            self._phone.open.discard(question.challenge_id)  # the code is used up
            raise ProviderError(error)
        return Answer(Outcome.APPROVED, handle)

    async def cancel(self, handle: str, *, deadline_s: float) -> None:
        """Withdraw a prompt. The user cannot answer it any more."""
        if await self._park("provider.cancel", handle) != FAILS:
            self._phone.open.discard(handle)

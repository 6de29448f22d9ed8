"""The provider and its user: one phone for all nodes."""

from dataclasses import dataclass, field

import trio

from sallyport.areas.mfa.provider import NO_WEB, Answer, Code, Outcome, Question, Strength
from tests.explore.store import Park

RIGHT_CODE = "123456"
LATE = "late"
"""The name that the device gives itself in a request that was already answered."""


@dataclass
class Phone:
    """The prompts that the provider has sent, by challenge id, and the answers of the user.

    open: the prompts whose result no login has used, and that have not ended. asked: how often each prompt was sent:
    again only if a node was lost before it has stored the handle. is_over: whether the login was answered. spent: the
    challenges whose code was right. broken: takes the promises that are broken.
    """

    asks_for_code: bool
    broken: list[str]
    asked: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Outcome] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    is_over: bool = False
    spent: set[str] = field(default_factory=set)

    def prompt(self, challenge_id: str, *, is_late: bool) -> None:
        """Send a prompt. is_late: whether only a late retransmission of an answered request has caused it."""
        if challenge_id not in self.asked:
            if is_late:
                self.broken.append("a late retransmission has prompted the user")
            if self.open:
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
        await self._park("provider.start", question.challenge_id)
        self._phone.prompt(question.challenge_id, is_late=question.device == LATE)
        if self._phone.asks_for_code:
            return Answer(Outcome.CODE, question.challenge_id)
        return Answer(Outcome.WAITING, question.challenge_id, again_s=0)

    async def poll(self, handle: str, *, deadline_s: float) -> Answer:
        """Wait for the answer of the user. The step is possible as soon as there is an answer."""
        await self._park("provider.poll", handle)
        return Answer(self._phone.answers[handle], handle)

    async def verify(self, question: Question, code: Code, handle: str, *, deadline_s: float) -> Answer:
        """Check a code. The right code is right once."""
        await self._park("provider.verify", (question.challenge_id, code.text))
        if not code.matches(RIGHT_CODE) or self._phone.spent:
            return Answer(Outcome.WRONG_CODE, handle)
        self._phone.spent.add(question.challenge_id)
        self._phone.answers[question.challenge_id] = Outcome.APPROVED
        return Answer(Outcome.APPROVED, handle)

    async def cancel(self, handle: str, *, deadline_s: float) -> None:
        """Withdraw a prompt. The user cannot answer it any more."""
        await self._park("provider.cancel", handle)
        self._phone.open.discard(handle)

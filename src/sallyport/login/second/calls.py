"""This module calls providers during logins. Calls are made in turns, and repeated if a provider is busy or a poll
fails.

A thousand logins whose provider asks for a poll each second are a thousand requests a second. This exceeds the capacity
of one interpreter and of most hooks, and other logins would wait. Therefore the polls of a domain start at a limited
rate: if more logins wait, each is polled less often.
"""

import math
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from sallyport.base.fair import LoopTurns
from sallyport.login.login import Reason
from sallyport.login.second.conversation import Conversation, SecondFactorResult
from sallyport.login.second.prompts import UserKey
from sallyport.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.store.model import Tx

POLL_S: Final = 40.0  # some providers let the call wait for the user
POLLS, POLL_AGAIN_S = 3, 1.0  # how often a failed poll is tried, and the wait between the tries
CALL_S: Final = 15.0  # time limit of one call; a provider that takes longer counts as unreachable
CANCEL_S: Final = 3.0
POLLS_A_SECOND: Final = 500


class Pace:
    """A rate limit for the start of calls. Calls start in the order of their arrival. Unused capacity does not
    accumulate. most: calls a second."""

    def __init__(self, most: float) -> None:
        self._between_s = 1 / most
        self._next_at = 0.0

    async def keep(self) -> None:
        """Wait until the caller may start."""
        at = max(self._next_at, trio.current_time())
        self._next_at = at + self._between_s
        await trio.sleep_until(at)


class Calls:
    """The calls of providers if there is only one node. With several nodes, `shared.SharedCalls` is used instead.

    In each pass of the event loop only one call starts, and tenants take turns. Otherwise a thousand logins that begin
    or end together would delay all others until all their calls have started.
    """

    def __init__(self) -> None:
        self._turns: defaultdict[int, LoopTurns] = defaultdict(LoopTurns(1).for_tenant)  # by tenant
        self._paces: defaultdict[int, Pace] = defaultdict(lambda: Pace(POLLS_A_SECOND))  # by domain

    knows_prompts = False
    """Whether the pending prompts are in the store."""

    async def run(self) -> None:
        """Follow the prompts of other nodes, until cancelled."""

    async def claim(self, conversation: Conversation, user: UserKey | None) -> Reason | None:
        """Begin a conversation, or join that of another node. Return the reason if it cannot continue, else None. user:
        the user for whom a prompt is counted; None if no prompt is counted. Raises StoreError."""
        return None

    async def hand_over(self) -> None:
        """Give the prompts of this node to the other nodes, because this node stops."""

    async def return_here(self, conversation: Conversation) -> bool:
        """Let the newest request of a login wait at this node again, after a request at another node. Return False if
        the login has got its answer. Raises StoreError."""
        return True

    def once(
        self, result: SecondFactorResult, write: Callable[[Tx], None] | None
    ) -> Callable[[Tx], bool | None] | None:
        """Return the write that belongs to the answer of a result. If another node sends the answer, this write changes
        nothing and returns False."""
        return write

    async def consume(self, result: SecondFactorResult) -> bool:
        """Use a result inside EAP, where no answer belongs to the result itself. Return False if another node has used
        it. Raises StoreError."""
        return True

    async def outcome(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Start a conversation by the call `begin`, poll while the answer is WAITING, and return the final answer.
        Raises ProviderError."""
        await self._turns[conversation.tenant_id].take()
        answer = await _when_free(conversation, begin)
        while answer.outcome is Outcome.WAITING:
            await self._waits(conversation, answer)
            if not 0 <= answer.again_s < math.inf:
                raise ProviderError("the provider's answer is not valid")
            await trio.sleep(answer.again_s)
            answer = await self._poll(conversation)
        return answer

    async def _waits(self, conversation: Conversation, answer: Answer) -> None:
        """Record a WAITING answer."""
        conversation.handle, conversation.text = answer.handle, answer.text

    async def _poll(self, conversation: Conversation) -> Answer:
        """Return the state of the user's prompt. A failed poll is tried again, because the user may answer soon."""
        provider, pace = conversation.attached.provider, self._paces[conversation.session.question.domain_id]
        poll = partial(provider.poll, conversation.handle, deadline_s=POLL_S)
        for _ in range(POLLS - 1):
            await pace.keep()
            try:
                return await _when_free(conversation, poll)
            except ProviderError:
                if provider.is_open:
                    raise
                await trio.sleep(POLL_AGAIN_S)
        await pace.keep()
        return await _when_free(conversation, poll)


async def _when_free(conversation: Conversation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return the provider's answer. A busy provider (HTTP 429) is asked again after its Retry-After, until the login
    times out. Raises ProviderError."""
    until = min(conversation.deadline, trio.current_time() + conversation.attached.timeout_s)
    while True:
        try:
            return await ask()
        except ProviderError as error:
            rest_s = error.retry_after_s * (1 + random.random() / 4)  # noqa: S311  not all of them at once
            if not rest_s or trio.current_time() + rest_s >= until:
                raise
            await trio.sleep(rest_s)


async def withdraw(conversation: Conversation) -> None:
    """Withdraw the prompt, if there is one, because its answer would no longer count."""
    if conversation.handle:
        with trio.CancelScope(shield=True):
            await conversation.attached.provider.cancel(conversation.handle, deadline_s=CANCEL_S)


async def first_call(conversation: Conversation, code: Code | None) -> Answer:
    """Ask for a push, or check the code that came with the password."""
    attached, question = conversation.attached, conversation.session.question
    # the limit is before the login's own end, so that the circuit counts the failure
    call_s = min(CALL_S, attached.timeout_s - 0.5)
    if code is None:
        return await attached.provider.start(question, deadline_s=call_s)
    return await attached.provider.verify(question, code, "", deadline_s=call_s)


def reason_of(conversation: Conversation, error: ProviderError) -> Reason:
    """Return why a provider could not be asked. If the rate limit (HTTP 429) is reached before a prompt, the fallback
    decides the login. If it is reached after a prompt, or by a code that a user has typed, the login is refused.
    Otherwise a user who exceeds the limit would be admitted by the fallback."""
    if error.limited and conversation.checks_code:
        return Reason.TOO_MANY_CODES
    if error.limited:
        return Reason.NOT_ANSWERED if conversation.handle or conversation.session.step else Reason.RATE_LIMITED
    return Reason.CIRCUIT_OPEN if conversation.attached.provider.is_open else Reason.UNREACHABLE

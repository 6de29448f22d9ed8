"""Calls of providers during logins: in turns, with retries if a provider is busy or a poll fails.

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
from sallyport.login.second.conversation import Conversation
from sallyport.mfa.provider import Answer, Outcome, ProviderError

POLL_S: Final = 40.0  # some providers let the call wait for the user
POLLS, POLL_AGAIN_S = 3, 1.0  # the number of tries of a poll that fails, and the wait between them
CANCEL_S: Final = 3.0
POLLS_A_SECOND: Final = 500


class Pace:
    """A rate limit for the start of calls, first come first served. Unused capacity does not accumulate. most: calls a
    second."""

    def __init__(self, most: float) -> None:
        self._between_s = 1 / most
        self._next_at = 0.0

    async def keep(self) -> None:
        """Wait until the caller may start."""
        at = max(self._next_at, trio.current_time())
        self._next_at = at + self._between_s
        await trio.sleep_until(at)


class Calls:
    """The calls of providers. In each pass of the event loop only one call starts, and tenants take turns. Otherwise a
    thousand logins that begin or end together would delay all others until all their calls have started."""

    def __init__(self) -> None:
        self._turns: defaultdict[int, LoopTurns] = defaultdict(LoopTurns(1).for_tenant)  # by tenant
        self._paces: defaultdict[int, Pace] = defaultdict(lambda: Pace(POLLS_A_SECOND))  # by domain

    async def outcome(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Start a conversation by the call `begin`, poll while the answer is WAITING, and return the final answer.
        Raises ProviderError."""
        await self._turns[conversation.tenant_id].take()
        answer = await _when_free(conversation, begin)
        while answer.outcome is Outcome.WAITING:
            conversation.handle, conversation.text = answer.handle, answer.text
            if not 0 <= answer.again_s < math.inf:
                raise ProviderError("the provider's answer is not valid")
            await trio.sleep(answer.again_s)
            answer = await self._poll(conversation)
        return answer

    async def _poll(self, conversation: Conversation) -> Answer:
        """Return the state of the user's prompt. A failed poll is tried again, since the user may be about to
        answer."""
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
    """Withdraw the prompt, if there is one, since its answer would no longer count."""
    if conversation.handle:
        with trio.CancelScope(shield=True):
            await conversation.attached.provider.cancel(conversation.handle, deadline_s=CANCEL_S)

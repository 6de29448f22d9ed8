"""Calls of providers that go on for as long as a login lasts: in turns, again where a provider is busy, and once more
where a poll has failed.

A thousand logins whose provider wants to be asked each second are a thousand requests a second, more than one
interpreter and many a hook can do, and logins beside them would wait. So the polls of a domain begin at a pace: where
there would be more, each login is asked about less often.
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

POLL_S: Final = 40.0  # some let the call wait for the user
POLLS, POLL_AGAIN_S = 3, 1.0  # how often a poll that fails is tried, and after how long
CANCEL_S: Final = 3.0
POLLS_A_SECOND: Final = 500


class Pace:
    """Lets calls begin so many a second, the first come first, and none for those that were not made."""

    def __init__(self, most: float) -> None:
        self._between_s = 1 / most
        self._next_at = 0.0

    async def keep(self) -> None:
        """Return when the caller may begin."""
        at = max(self._next_at, trio.current_time())
        self._next_at = at + self._between_s
        await trio.sleep_until(at)


class Calls:
    """Asks providers. One call begins in a turn of the event loop: a thousand logins that begin or end together would
    otherwise hold up everybody else's for as long as all of their calls take. Tenants take turns."""

    def __init__(self) -> None:
        self._turns: defaultdict[int, LoopTurns] = defaultdict(LoopTurns(1).for_tenant)  # by tenant
        self._paces: defaultdict[int, Pace] = defaultdict(lambda: Pace(POLLS_A_SECOND))  # by domain

    async def outcome(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the result of a conversation that begins with this call; never WAITING. ProviderError."""
        await self._turns[conversation.tenant_id].take()
        answer = await _when_free(conversation, begin)
        while answer.outcome is Outcome.WAITING:
            conversation.handle, conversation.text = answer.handle, answer.text
            if not 0 <= answer.again_s < math.inf:
                raise ProviderError("the provider gives an answer that makes no sense")
            await trio.sleep(answer.again_s)
            answer = await self._poll(conversation)
        return answer

    async def _poll(self, conversation: Conversation) -> Answer:
        """How the user's prompt stands. One call that fails is no outage: the user may be reaching for the phone."""
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
    """What the provider answers once it has time: one that is busy (HTTP 429) is asked again when it wants to be, as
    long as the login lasts. ProviderError."""
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
    """Withdraw the prompt, if there is one: its answer would not count any more."""
    if conversation.handle:
        with trio.CancelScope(shield=True):
            await conversation.attached.provider.cancel(conversation.handle, deadline_s=CANCEL_S)

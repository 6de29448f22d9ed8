"""Call the providers during logins. Polls are paced, and failed calls are repeated.

Suppose that a thousand logins wait, and the provider asks for a poll each second. A thousand polls a second exceed the
capacity of one Python interpreter and of most webhooks, and would delay other logins. So the polls of a domain start at
a limited rate. If more logins wait, each is polled less often.
"""

import math
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import trio

from sallyport.areas.factors.pauses.repo import Pause
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.conversation import Approval, Conversation, SecondFactorResult
from sallyport.areas.login.second.prompts import UserKey
from sallyport.areas.mfa.circuit import CircuitOpen
from sallyport.areas.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.base.clock import iso_seconds
from sallyport.base.fair import LoopTurns
from sallyport.store.model import Tx

POLL_S: Final = 40.0  # some providers let the call wait for the user
POLLS, POLL_AGAIN_S = 3, 1.0  # how often a failed poll is tried, and the wait between the tries
CALL_S: Final = 15.0  # time limit of one call; a provider that takes longer counts as unreachable
CANCEL_S: Final = 3.0
POLLS_A_SECOND: Final = 500


class Pace:
    """A rate limit for the start of calls, in the order of their arrival. Unused capacity does not accumulate. most:
    the maximum number of calls a second."""

    def __init__(self, most: float) -> None:
        self._between_s = 1 / most
        self._next_at = 0.0

    async def keep(self) -> None:
        """Wait until the caller may start its call."""
        at = max(self._next_at, trio.current_time())
        self._next_at = at + self._between_s
        await trio.sleep_until(at)


class Calls:
    """The calls to providers on a single node. With several nodes, `shared.SharedCalls` is used instead. pauses: the
    users who get no prompt at present.

    In each pass of the event loop only one call starts, and tenants take turns. Otherwise, if a thousand logins began
    together, every other login would wait until all their calls have started.
    """

    def __init__(self, pauses: Pauses) -> None:
        self._pauses = pauses
        self._turns: defaultdict[int, LoopTurns] = defaultdict(LoopTurns(1).for_tenant)  # by tenant
        self._paces: defaultdict[int, Pace] = defaultdict(lambda: Pace(POLLS_A_SECOND))  # by domain
        self._approvals: WeakKeyDictionary[Approval, None] = WeakKeyDictionary()  # those that are not stored yet

    knows_prompts = False
    """Whether the store contains the pending prompts, so that another node can continue them."""

    async def run(self) -> None:
        """Follow the prompts that other nodes have sent, until cancelled. On a single node, do nothing."""

    async def claim(self, conversation: Conversation, user: UserKey | None) -> SecondFactorResult | None:
        """Begin a conversation, or join the conversation of another node about the same login. Return None on success,
        otherwise the refusal. Raises StoreError. Raises AnsweredElsewhere if the conversation must not
        begin a new prompt, and there is none that it can join.

        user: the user whose limit of prompts applies, or None if the prompt is not counted.
        """
        if user is None or not conversation.prompts:
            return None
        return self._paused(conversation, await self._pauses.read(user))

    def _paused(self, conversation: Conversation, pause: Pause | None) -> SecondFactorResult | None:
        """Return the refusal of a prompt if its user has a pause now. Otherwise return None."""
        conversation.has_count = pause is not None
        if pause is None or not self._pauses.is_paused(pause):
            return None
        until = iso_seconds(pause.until)
        return SecondFactorResult(Reason.TOO_MANY_PROMPTS, detail=f"no prompt until {until}: {pause.reason}")

    def deny(self, tx: Tx, user: UserKey) -> None:
        """End a user's prompts at all nodes, in the transaction of the user's denial. On a single node, the prompts are
        only in memory, and an Accept that is not stored yet is not stored any more."""
        for reference in self._approvals.keyrefs():  # a copy, because the event loop adds approvals
            if (approval := reference()) is not None and approval.user == user:
                approval.is_denied = True

    def approved(self, conversation: Conversation) -> Approval | None:
        """Return the approval whose Accept a later denial of the user prevents, until the Accept is stored. If several
        nodes share the prompts, the row of the prompt does this, and the result is None."""
        approval = Approval(conversation.user)
        self._approvals[approval] = None
        return approval

    def forget_codes(self, tx: Tx, user: UserKey) -> None:
        """Reset the count of a user's wrong codes in the store. On a single node, only the lock-outs count them."""

    async def hand_over(self) -> None:
        """Give the prompts of this node to the other nodes, because this node stops."""

    async def return_here(self, conversation: Conversation) -> bool:
        """Let this node answer a login again. A request of the login went to another node, and this node has
        received a newer one. Return False if the login is already answered. Raises StoreError."""
        return True

    def once(
        self, result: SecondFactorResult, write: Callable[[Tx], None] | None
    ) -> Callable[[Tx], bool | None] | None:
        """Return a function to call in the transaction of the answer, or None if this transaction needs no call.

        The returned function calls `write`. If another node has already sent the answer, or if the user has denied a
        login after the approval, the returned function does not call `write`, and returns False. write: a function that
        writes the challenge of the result; None without a challenge.
        """
        return write if result.approval is None else partial(_unless_denied, approval=result.approval, write=write)

    async def consume(self, result: SecondFactorResult) -> bool:
        """Mark a result as used. This is needed inside EAP, where the result is not stored with an event. Return False
        if another node has used the result, or if the user has denied a login after the approval. Raises StoreError."""
        return result.approval is None or not result.approval.is_denied

    async def outcome(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Start a conversation with the call `begin`. Poll while the answer is WAITING, and return the final answer.
        Raises ProviderError."""
        await self._turns[conversation.tenant_id].take()
        answer = await _when_free(conversation, begin)
        while answer.outcome is Outcome.WAITING:
            await self._waits(conversation, answer)
            if not 0 <= answer.again_s < math.inf:
                raise ProviderError("the provider's answer has an invalid time for the next poll")
            await trio.sleep(answer.again_s)
            answer = await self._poll(conversation)
        return answer

    async def _waits(self, conversation: Conversation, answer: Answer) -> None:
        """Record a WAITING answer. Later polls identify the prompt by the answer's handle."""
        conversation.handle, conversation.text = answer.handle, answer.text

    async def _poll(self, conversation: Conversation) -> Answer:
        """Poll the provider for the state of the user's prompt. A failed poll is repeated, because the user may answer
        soon."""
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


def _unless_denied(tx: Tx, approval: Approval, write: Callable[[Tx], None] | None) -> bool:
    if not approval.is_denied and write is not None:
        write(tx)
    return not approval.is_denied


async def _when_free(conversation: Conversation, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Call the provider, and return its answer. If the provider is busy (HTTP 429), wait for its Retry-After, and call
    again. If the login would time out during this wait, do not wait. Raises ProviderError."""
    until = min(conversation.deadline, trio.current_time() + conversation.attached.timeout_s)
    while True:
        try:
            async with conversation.attached.provider.room:
                conversation.asked = True
                return await ask()
        except ProviderError as error:
            rest_s = error.retry_after_s * (1 + random.random() / 4)  # noqa: S311  not all of them at once
            if not rest_s or trio.current_time() + rest_s >= until:
                raise
            await trio.sleep(rest_s)


async def withdraw(conversation: Conversation) -> None:
    """Withdraw the user's prompt, if there is one, because an approval would no longer count."""
    if conversation.handle:
        with trio.CancelScope(shield=True):
            await conversation.attached.provider.cancel(conversation.handle, deadline_s=CANCEL_S)


async def first_call(conversation: Conversation, code: Code | None) -> Answer:
    """Send a prompt. If a code came with the password, check the code instead."""
    attached, question = conversation.attached, conversation.session.question
    # the limit is before the login's own end, so that the circuit counts the failure
    call_s = min(CALL_S, attached.timeout_s - 0.5)
    if code is None:
        return await attached.provider.start(question, deadline_s=call_s)
    return await attached.provider.verify(question, code, "", deadline_s=call_s)


def reason_of(conversation: Conversation, error: ProviderError) -> Reason:
    """Return the reason why a provider could not be asked.

    If the provider's rate limit (HTTP 429) is reached before the first prompt, the domain's fallback decides the login.
    After a prompt, or if the user has typed a code, the login is refused. Otherwise a user could exceed the limit on
    purpose, so that the fallback admits the login.
    """
    if error.limited and conversation.checks_code:
        return Reason.TOO_MANY_CODES
    if error.limited:
        return Reason.NOT_ANSWERED if conversation.handle or conversation.session.step else Reason.RATE_LIMITED
    # A circuit may be closed again by now, since several nodes store the failure first.
    is_open = isinstance(error, CircuitOpen) or conversation.attached.provider.is_open
    return Reason.CIRCUIT_OPEN if is_open else Reason.UNREACHABLE

"""Ask for second factors. The service joins the requests of a login, sends a challenge if the device cannot wait, and
continues a login when its challenge is answered."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.clients.client import is_check
from sallyport.areas.domains.domain import WEB, Domain
from sallyport.areas.factors.denials import Denial, Denials
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.login.second import session as sessions
from sallyport.areas.login.second.calls import CALL_S, POLL_S, Calls, first_call, reason_of, withdraw
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.conversation import (
    DENIED,
    DUPLICATE,
    NOT_ANSWERED,
    AnsweredElsewhere,
    Conversation,
    NotAsked,
    Proof,
    SecondFactorResult,
)
from sallyport.areas.login.second.endings import Endings
from sallyport.areas.login.second.forecast import UNAVAILABLE, Enrolments
from sallyport.areas.login.second.prompts import Prompts, UserKey
from sallyport.areas.login.second.running import Running
from sallyport.areas.login.second.session import WRONG_CODES, Asked, ChallengeKind, LoginKey, Session
from sallyport.areas.login.second.web_limits import WebLimits
from sallyport.areas.mfa.circuit import Attached, Providers, Unavailable
from sallyport.areas.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import PacketError, StoreError
from sallyport.base.text import fold, fold_name
from sallyport.metrics import MfaMetrics
from sallyport.radius.attributes import EAP_MESSAGE
from sallyport.radius.salted import HIDDEN, without_hidden
from sallyport.store.model import Tx

PURGE_S: Final = 30.0
MAX_STEPS: Final = 20
MAX_CHALLENGES: Final = 200  # the step is one octet of the State; after the last challenge a device has to wait
ENTER_CODE: Final = "Enter your code"
WRONG_CODE: Final = "Wrong code. Enter your code"
APPROVE: Final = "Approve on your phone, then press Enter"

log = structlog.get_logger()

_REASONS = {
    Outcome.APPROVED: Reason.NONE,
    Outcome.DENIED: Reason.DENIED,
    Outcome.NOT_ME: Reason.NOT_ME,
    Outcome.WRONG_CODE: Reason.WRONG_CODE,
    Outcome.NOT_ENROLLED: Reason.NOT_ENROLLED,
    Outcome.UNBOUND: Reason.UNBOUND_LOGIN,
    Outcome.NOT_RETURNED: Reason.CODE_NOT_RETURNED,
    Outcome.NO_TRIES_LEFT: Reason.WRONG_CODE,
    Outcome.TOO_MANY: Reason.TOO_MANY_PROMPTS,
}
_RESULTS = {
    Reason.NONE: "approved",
    Reason.ASKED: "challenged",
    Reason.ASKED_AGAIN: "challenged",
    Reason.NOT_ANSWERED: "expired",
}
_UNANSWERED = {Reason.NOT_ANSWERED, Reason.UNREACHABLE, Reason.CIRCUIT_OPEN, Reason.NOT_ME}
_ANSWERED = {Reason.NONE, Reason.DENIED, Reason.NOT_ME}
OVER: Final = SecondFactorResult(Reason.CHALLENGE_OVER)
STOPPED: Final = SecondFactorResult(Reason.STOPPED)
UNREACHABLE: Final = SecondFactorResult(Reason.UNREACHABLE)


class SecondFactor:
    """The second factor of all domains. `run` must be running while users are asked.

    providers: the providers of all domains. challenges: the challenges that were sent. calls: the calls to providers,
    on a single node or shared by several. pauses, denials: the users who get no prompt at present, and what follows
    from "not me". web_limits: the limits of logins whose password nobody has checked. patience: a function that returns
    the time in seconds for which a login may wait before it gets a challenge. hidden: the answer attributes that are
    encrypted, by (vendor, type), each with its kind of encryption; see `radius.salted`.
    """

    def __init__(
        self,
        providers: Providers,
        challenges: Challenges,
        calls: Calls,
        metrics: MfaMetrics,
        pauses: Pauses,
        denials: Denials,
        web_limits: WebLimits,
        *,
        patience: Callable[[Login, Attached], float],
        clock: Clock,
        hidden: Mapping[tuple[int, int], int] = HIDDEN,
    ) -> None:
        self._providers = providers
        self.challenges = challenges
        self._metrics = metrics
        self._patience = patience
        self._clock = clock
        self._hidden = hidden
        self._endings = Endings(pauses, denials, metrics)
        self._prompts = Prompts(trio.current_time)
        self._web_limits = web_limits
        self.enrolments = Enrolments(trio.current_time)
        self._nursery: trio.Nursery
        self._calls = calls
        self._stopping = False
        self._running = Running()
        denials.on_denial(self._deny, self._end_denied)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the conversations until cancelled. Then withdraw the prompts that no login can use any more."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self.enrolments.run)
            self._nursery.start_soon(self._calls.run)
            self._nursery.start_soon(self._purge)
            task_status.started()

    async def stop_waiting(self) -> None:
        """End all waiting logins now, because the service stops.

        A device that has answered challenges before gets a challenge. After the next start of the service, the device's
        answer continues the same prompt. On a single node, the fallback decides the logins of other devices. If several
        nodes share the store, other devices get no answer, because their retransmission continues the prompt at another
        node.
        """
        self._stopping = True
        for conversation in self._running:
            conversation.wake()
        await self._calls.hand_over()

    # --- without waiting --------------------------------------------------------------------------------------

    async def pending(self, domain: Domain, user: str) -> list[Session]:
        """Return the prompts of a user that wait for an answer: the challenges that were sent, and the prompts of this
        node for which a request waits. Raises StoreError."""
        key = (domain.id, fold(user))
        waiting = [
            each.session
            for each in self._running
            if each.result is None and (each.session.question.domain_id, fold(each.session.question.user)) == key
        ]
        sent = await self.challenges.sessions_of(domain.id, user)
        return list({session.id: session for session in (*sent, *waiting)}.values())

    # --- a login asks -----------------------------------------------------------------------------------------

    async def ask(self, login: Login, domain: Domain, asked: Asked) -> SecondFactorResult | None:
        """Ask for a login's second factor at `login.provider`. Return None if a newer request of the same login has
        replaced this request."""
        attached = login.provider
        if isinstance(attached, Unavailable):
            return SecondFactorResult(UNAVAILABLE[attached], asked=asked)
        if self._stopping:
            return replace(self._stopped(), asked=asked)
        login.factor = f"{domain.factor}+{attached.name}"
        key = sessions.same_login(login, asked)
        while (same := self._running.of_login(key, attached)) is not None:
            if await self._is_here(same):
                return await self._join(login, same)
            self._running.let_go(same)
        # A new conversation of EAP is a new login, and a login with a typed code sends no prompt.
        may_prompt = EAP_MESSAGE not in login.arrival.request.first and login.code is None
        if key is not None and may_prompt and self._running.was_accepted(key, attached):
            raise PacketError("the login was accepted while this request was on its way", DUPLICATE)
        user = None if domain.first_factor is WEB else (domain.id, fold_name(login.principal))
        if user is None:
            is_admitted = self._web_limits.admit(login, domain)
        else:
            is_admitted = self._prompts.begin(user, domain.tenant_id, has_code=login.code is not None)
        if not is_admitted:
            return SecondFactorResult(Reason.TOO_MANY_PROMPTS, asked=asked)
        accept = without_hidden(login.found.accept + login.found.keys, self._hidden)
        session = sessions.new_session(login, domain, attached, asked, accept)
        conversation = Conversation(attached, session, key, trio.current_time() + attached.timeout_s, login)
        conversation.only_joins = self._running.was_left(login)
        self._start(conversation, partial(first_call, conversation, login.code), user)
        return await self._wait(login, conversation)

    def _send(self, conversation: Conversation, result: SecondFactorResult) -> SecondFactorResult:
        """Remember a challenge that is sent, so that the next request can continue the login."""
        assert result.session is not None  # noqa: S101  a challenge has one
        conversation.session = result.session
        self.challenges.sent(result.session, conversation.tenant_id)
        return replace(result, prompt=conversation.prompt)

    def _forget(self, conversation: Conversation) -> None:
        """Remove a conversation whose result was taken, so that no further request can join it. If the result ends the
        last challenge, mark this challenge as ended. After an approval, further requests of the login are dropped for
        HELD_S: they were on their way already. If several nodes share the prompts, the row of the prompt does this."""
        session, result = conversation.session, conversation.result
        self._running.remove(conversation)
        if result is not None and result.reason is Reason.NONE and not self._calls.knows_prompts:
            self._running.accepted(conversation)
        if result is not None and result.session is None and session.step and result.reason is not OVER.reason:
            self.challenges.ended(session, conversation.tenant_id)

    async def _is_here(self, conversation: Conversation) -> bool:
        """Return whether this node may answer a conversation's login. If the login has waited at another node in
        between, try to return the login to this node first."""
        return not conversation.elsewhere or await self._calls.return_here(conversation)

    async def _join(self, login: Login, conversation: Conversation) -> SecondFactorResult | None:
        self._metrics.joined(conversation.attached.name)
        return await self._wait(login, conversation)

    async def _wait(self, login: Login, conversation: Conversation) -> SecondFactorResult | None:
        """Wait for a conversation's result. If the device cannot wait any longer, return a challenge with which the
        user can continue."""
        waiter = conversation.attach(login)
        with trio.move_on_after(0 if self._stopping else self._limit_s(login, conversation)):
            await waiter.done.wait()
        if not waiter.done.is_set() and not self._stopping:
            if not is_check(login.arrival.request):
                login.device.posture.measure(login.known, time.monotonic(), self._clock())
            if self._limit_s(login, conversation) == math.inf:  # the device waits longer than it did before
                await waiter.done.wait()
        if waiter.superseded:
            return None
        if waiter.elsewhere:
            self._running.left(login)
            if conversation.result is not None:
                self._running.let_go(conversation)
            raise AnsweredElsewhere
        if conversation.error is not None:
            raise conversation.error
        if (
            conversation.result is None
            and self._stopping
            and not (_may_challenge(conversation) and conversation.outlives(login))
        ):
            conversation.finish(self._stopped())
        if conversation.result is None:
            conversation.leave(waiter)
            text = conversation.text or APPROVE
            return self._send(
                conversation,
                self.challenges.next_step(conversation.session, ChallengeKind.APPROVAL, conversation.handle, text),
            )
        result = conversation.take()
        if result is None:
            return OVER
        self._forget(conversation)
        if result.session is not None:
            return self._send(conversation, result)
        session = conversation.session
        over = session.id if session.step else ""
        approval = self._calls.approved(conversation) if result.reason is Reason.NONE else None
        return replace(
            result,
            over=over,
            asked=session.asked,
            found=session.found,
            prompt=conversation.prompt,
            approval=approval,
        )

    def _limit_s(self, login: Login, conversation: Conversation) -> float:
        """Return the time in seconds for which a login may wait before it gets a challenge. Return infinity if it
        cannot get one."""
        return self._patience(login, conversation.attached) if _may_challenge(conversation) else math.inf

    def _stopped(self) -> SecondFactorResult:
        """Return the result of a login that ends because the service stops. Raises AnsweredElsewhere if other nodes
        continue the prompt."""
        if self._calls.knows_prompts:
            raise AnsweredElsewhere
        return STOPPED

    def keep(self, result: SecondFactorResult) -> Callable[[Tx], bool | None] | None:
        """Return a function that writes to the store before the answer is sent. It returns False if another node sends
        the answer, or if a denial of the user came first."""
        return self._calls.once(result, self.challenges.keep(result))

    def left(self, login: Login) -> None:
        """Remember a request that is dropped because another node answers its login; see `Running.left`."""
        self._running.left(login)

    async def consume(self, result: SecondFactorResult) -> bool:
        """Mark a result as used. This is needed inside EAP, where the result is not stored with an event. Return False
        if another node has used the result. Raises StoreError."""
        return await self._calls.consume(result)

    # --- a login answers a challenge --------------------------------------------------------------------------

    async def resume(self, login: Login, challenge_id: str, step: int, code: Code) -> SecondFactorResult | None:
        """Continue a login whose challenge is answered. Return None if a newer request of the same login has replaced
        this request. code: the text that the user typed."""
        if self._stopping and self._calls.knows_prompts:
            raise AnsweredElsewhere
        known = await self.challenges.find(challenge_id)
        if known is None and self._running.was_left(login):
            raise AnsweredElsewhere
        if known is not None:
            login.provider = self._providers.of(known.question.domain_id, known.provider_name)
        attached = login.provider
        if (
            known is None
            or not isinstance(attached, Attached)
            or known.provider != attached.stamp
            or (step != known.step or known.expires_at <= self._clock() or not known.is_of(login))
        ):
            return OVER
        if known.kind is ChallengeKind.DENIED:
            login.factor = f"{login.factor}+{attached.name}"
            self._running.end_challenge(challenge_id)
            self.challenges.ended(known, login.arrival.client.tenant_id)
            return replace(DENIED, over=known.id, asked=known.asked, found=known.found)
        conversation = self._running.of_challenge(challenge_id)
        # another node has sent the last challenge
        if conversation is not None and conversation.session.step != step:
            if known.kind is ChallengeKind.APPROVAL:
                conversation.session = known
            else:
                conversation = None
        if (
            conversation is None
            and known.kind is ChallengeKind.APPROVAL
            and not (known.handle or self._calls.knows_prompts)
        ):
            return OVER  # the service ended before the provider's first answer
        login.factor = f"{login.factor}+{attached.name}"
        login.code = code if known.kind is ChallengeKind.CODE and not code.is_empty else None
        key: LoginKey = (challenge_id, step, login.code)
        if conversation is None:
            conversation = self._continue(known, attached, key, code, login)
            return await self._wait(login, conversation)
        if (known.kind is ChallengeKind.CODE and conversation.key != key) or not conversation.admits(login):
            return OVER  # another code while one is being checked, or an unsigned copy of a signed answer
        return await self._join(login, conversation) if await self._is_here(conversation) else OVER

    def _continue(self, known: Session, attached: Attached, key: LoginKey, code: Code, login: Login) -> Conversation:
        question, provider, left = known.question, attached.provider, math.inf  # a single call has its own time limit
        if known.kind is ChallengeKind.APPROVAL:
            left = max(0.0, (question.expires_at - self._clock()) / SECOND)
        conversation = Conversation(attached, known, key, trio.current_time() + left, login)
        begin = partial(first_call, conversation, None)
        if known.kind is ChallengeKind.CODE:
            begin = partial(provider.verify, question, code, known.handle, deadline_s=CALL_S)
        elif known.handle:
            begin = partial(provider.poll, known.handle, deadline_s=POLL_S)
            conversation.handle, conversation.has_count = known.handle, True
        self._start(conversation, begin, None)
        return conversation

    # --- a conversation's task --------------------------------------------------------------------------------

    def _start(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]], user: UserKey | None) -> None:
        self._running.add(conversation)
        self._nursery.start_soon(self._carry, conversation, begin, user)

    async def _carry(
        self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]], user: UserKey | None
    ) -> None:
        result: SecondFactorResult | None = None
        try:
            result = await self._claim(conversation, user)
            if result is None and not conversation.is_denied:
                with trio.move_on_at(conversation.deadline) as conversation.scope:
                    result = await self._converse(conversation, begin)
                conversation.scope = None
                if result is None and not (conversation.is_asked or conversation.is_denied):
                    conversation.error = NotAsked()
        except ProviderError as error:
            result = SecondFactorResult(reason_of(conversation, error))
            log.warning(
                "mfa_provider_unreachable",
                domain=conversation.session.question.domain,
                provider=conversation.attached.name,
                error=str(error),
            )
        except trio.Cancelled:  # the service stops; a challenge that was sent can be answered after the next start
            if conversation.session.step == 0 and conversation.owns and not conversation.elsewhere:
                await withdraw(conversation)
            raise
        except Exception as error:  # the store or the service has failed, so no request is answered
            conversation.error = error
        finally:
            self._leave(conversation, user, result)
        if conversation.is_denied:
            result = DENIED
        if result is None:  # the time limit was reached before the user answered, or before the provider's first answer
            result = NOT_ANSWERED if conversation.handle or conversation.session.step else UNREACHABLE
        await self._endings.record(conversation, result)
        conversation.finish(result)
        if not conversation.waits:
            self._running.let_go(conversation)
        if not conversation.owns:  # the other node counts this prompt
            return
        self._metrics.finished(
            conversation.attached.name,
            _RESULTS.get(result.reason, result.reason.name.lower()),
            trio.current_time() - conversation.began,
            conversation.place,
        )
        if result.reason in _UNANSWERED:  # only after the login has its answer, because the provider may be slow
            await withdraw(conversation)

    def _deny(self, tx: Tx, denial: Denial) -> None:
        """End a user's prompts and challenges in the store, in the transaction of the user's denial."""
        self._calls.deny(tx, denial.person)
        self.challenges.deny(tx, denial.domain_id, denial.user)

    def _end_denied(self, denial: Denial) -> None:
        """End a user's prompts and challenges at this node, after the commit of the denial."""
        self.challenges.denied(denial.domain_id, denial.user)
        for conversation in self._running:
            if conversation.session.question.domain_id == denial.domain_id and conversation.user == denial.person:
                conversation.deny()

    def _leave(self, conversation: Conversation, user: UserKey | None, result: SecondFactorResult | None) -> None:
        """Clean up when the conversation's task ends. Further requests join until the result is taken. After an
        internal error, no request joins, and the challenge can be answered again."""
        if result is not None and result.reason in _ANSWERED:
            self._prompts.answered(conversation.user)
        if user is not None:
            is_dropped = isinstance(conversation.error, AnsweredElsewhere) and not conversation.asked
            if is_dropped or (result is not None and result.reason is Reason.TOO_MANY_PROMPTS):
                self._prompts.not_sent(user)
            conversation.is_excused = self._prompts.end(user, conversation.began)
        if conversation.error is not None:
            self._running.remove(conversation)

    async def _claim(self, conversation: Conversation, user: UserKey | None) -> SecondFactorResult | None:
        """Begin a conversation, or join the conversation of another node about the same login. Return None on success,
        otherwise the refusal."""
        own = conversation.session.id
        refused = await self._calls.claim(conversation, user)
        if conversation.session.id != own:
            self._running.rename(conversation, own)
        if not conversation.owns:
            self._metrics.joined(conversation.attached.name)
        return refused

    async def _converse(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> SecondFactorResult:
        answer = await self._calls.outcome(conversation, begin)
        session = conversation.session
        if answer.outcome is Outcome.CODE and not conversation.takes_codes:
            return SecondFactorResult(Reason.TAKES_NO_CODE)
        if answer.outcome is Outcome.CODE and session.step < MAX_STEPS:
            asked = self.challenges.next_step(session, ChallengeKind.CODE, answer.handle, answer.text or ENTER_CODE)
            return replace(asked, detail=answer.detail)
        if answer.outcome is Outcome.WRONG_CODE and session.step and session.wrong + 1 < WRONG_CODES:
            conversation.session = replace(session, wrong=session.wrong + 1)
            result = self.challenges.next_step(
                conversation.session, ChallengeKind.CODE, answer.handle, answer.text or WRONG_CODE
            )
            return replace(result, reason=Reason.ASKED_AGAIN, detail=answer.detail)
        if answer.outcome is Outcome.UNANSWERED:
            return NOT_ANSWERED
        proof = Proof(conversation.attached.name, answer.strength, detail=answer.detail)
        return SecondFactorResult(_REASONS.get(answer.outcome, Reason.DENIED), detail=answer.detail, proof=proof)

    # --- over time --------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Forget the challenges in memory, because the store was replaced."""
        self.challenges.forget()
        self._running.forget()

    async def _purge(self) -> None:
        """Periodically delete expired conversations and challenges, in memory and in the store."""
        while True:
            await trio.sleep(PURGE_S)
            now = self._clock()
            self._running.purge(now)
            with suppress(StoreError):
                await self.challenges.purge(now)


def _may_challenge(conversation: Conversation) -> bool:
    return conversation.takes_codes and conversation.session.step < MAX_CHALLENGES

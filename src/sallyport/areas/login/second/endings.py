"""What the end of a prompt means for the user's next prompts: it is stored before the login gets its answer."""

from contextlib import suppress

import structlog
import trio

from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.conversation import NOT_ANSWERED, Conversation, SecondFactorResult
from sallyport.areas.login.second.prompts import REFUSED, Refusals
from sallyport.base.errors import NotFound, StoreError
from sallyport.metrics import MfaMetrics

log = structlog.get_logger()


class Endings:
    """The ended prompts of all domains. pauses, denials: the users who get no prompt at present, and what follows from
    "not me"."""

    def __init__(self, pauses: Pauses, denials: Denials, metrics: MfaMetrics) -> None:
        self._pauses = pauses
        self._denials = denials
        self._metrics = metrics
        self._refusals = Refusals(trio.current_time)

    async def record(self, conversation: Conversation, result: SecondFactorResult) -> None:
        """Record the end of a prompt. If the store fails, the conversation gets this error: its requests get no answer,
        and the device asks again."""
        try:
            with suppress(NotFound):  # the domain was removed
                await self._store(conversation, result)
        except StoreError as error:
            conversation.error = error
        if conversation.owns and conversation.is_checked and result.reason is Reason.DENIED:
            self._note_refusal(conversation)

    async def _store(self, conversation: Conversation, result: SecondFactorResult) -> None:
        question, person = conversation.session.question, conversation.user
        if result.reason is Reason.NOT_ME:
            # The owner of the prompt may have stopped before it has stored the denial, so a follower stores it too.
            if not conversation.is_denied:
                is_checked = conversation.is_checked
                await self._denials.deny(Denial(question.domain_id, question.user, DeniedAt.PROVIDER, is_checked))
        elif not (conversation.owns and conversation.is_checked):  # another node, or nobody, counts this prompt
            return
        elif result is NOT_ANSWERED and conversation.handle and not conversation.is_excused:
            await self._pauses.count_unanswered(person, question.user)
        elif result.reason is Reason.NONE and conversation.has_count:
            await self._pauses.answered(person)

    def _note_refusal(self, conversation: Conversation) -> None:
        if self._refusals.note(conversation.user, conversation.tenant_id):
            self._metrics.refused_again()
            log.warning(
                "mfa_prompts_refused",
                domain=conversation.session.question.domain,
                user=conversation.session.question.user,
                provider=conversation.attached.name,
                refused=REFUSED,
            )

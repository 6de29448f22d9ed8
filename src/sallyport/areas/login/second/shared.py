"""Prompts and challenges that several nodes share. A login has one prompt and one Access-Accept, even if its requests
reach several nodes.

The node that inserts the row of a prompt owns the prompt, and asks the provider. If a request of the same login arrives
at another node, that node is a follower. A follower waits until the outcome is in the row. The newest request gets the
answer, so the row also names the node where the newest request waits. When this node answers, it marks the row as used
in the transaction of the event. Answers of other nodes are dropped.

If the owner dies or stops, a follower takes over. It polls the handle that the owner has stored, or asks again with
the same challenge id. Followers are woken by an announcement. They also read their rows once a second.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.factors.pauses.repo import Pause
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second import repo
from sallyport.areas.login.second import session as sessions
from sallyport.areas.login.second.calls import POLL_S, Calls
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.conversation import AnsweredElsewhere, Conversation, SecondFactorResult
from sallyport.areas.login.second.prompts import UserKey
from sallyport.areas.login.second.repo import FAILED, LIMITED, NO_LIMIT, Limit, NoCodeLeft, NoPrompt, Prompt
from sallyport.areas.login.second.session import LIFETIME_US, ChallengeKind, LoginKey, Session
from sallyport.areas.mfa.provider import Answer, Outcome, ProviderError, Strength
from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.store.foreign import PROMPTS, ForeignChange
from sallyport.store.model import Engine, Tx
from sallyport.store.vault import Vault

FOLLOW_S: Final = 1.0
MAX_FAILED: Final = 1000
"""Maximum number of prompts whose ownership a node gives up at once after errors of the store."""

log = structlog.get_logger()


class _NotOwner(Exception):
    """Raised if another node has taken over the prompt, because this node was silent."""


class SharedCalls(Calls):
    """The calls to providers on one of several nodes. node: the session that identifies this node. codes: the limit of
    wrong codes of each user."""

    knows_prompts = True

    def __init__(self, store: Engine, vault: Vault, node: str, pauses: Pauses, codes: Limit = NO_LIMIT) -> None:
        super().__init__(pauses)
        self.codes = codes
        self._store = store
        self._vault = vault
        self._node = node
        self._owned: set[tuple[str, int]] = set()  # the prompts for which a task of this node asks the provider
        self._failed: set[tuple[str, int]] = set()  # the prompts that this node may own, but whose task has failed
        self._watched: defaultdict[str, dict[Conversation, trio.Event]] = defaultdict(dict)  # by id
        self._due: set[str] = set()
        # the ids of a running read, without the ids that this node has changed since it began
        self._read: set[str] = set()
        self._news = trio.Event()
        self._hands_over = False
        store.on_foreign_change(self._changed)

    # --- beginning and end ------------------------------------------------------------------------------------

    async def claim(self, conversation: Conversation, user: UserKey | None) -> SecondFactorResult | None:
        counts_codes = conversation.checks_code and conversation.is_checked  # others may start the user's login
        new, codes = self._new(conversation), self.codes if counts_codes else NO_LIMIT
        prompted = user if conversation.prompts else None
        if codes.codes:
            user = conversation.user
        user_key = "" if user is None else self._digest(user)

        def transaction(tx: Tx) -> tuple[Prompt | None, Session | None, Pause | None]:
            """Insert a prompt, or find the existing prompt of the same login. Return the prompt. If it existed before,
            also return the last challenge of the login, otherwise the pause of the user. During a pause, insert no
            prompt."""
            found = repo.claim(
                tx,
                new,
                user_key,
                codes,
                only_joins=conversation.only_joins,
                has_code=conversation.checks_code,
                is_eap=conversation.is_eap,
            )
            if found is None or found.id != new.id:
                return found, None if found is None else sessions.read(tx, found.id), None
            pause = None if prompted is None else self._pauses.find(tx, prompted)
            if self._pauses.is_paused(pause):
                repo.discard(tx, new)
            return found, None, pause

        try:
            found, session, pause = await self._store.write_aside(transaction)
        except NoCodeLeft:
            return SecondFactorResult(Reason.LOCKED_OUT)
        except NoPrompt:
            raise AnsweredElsewhere from None
        except StoreError:
            self._note_failed(new)
            raise
        if found is None:
            return SecondFactorResult(Reason.TOO_MANY_PROMPTS)
        if (paused := self._paused(conversation, pause)) is not None:
            return paused
        if not repo.is_same(found, new):
            return SecondFactorResult(Reason.CHALLENGE_OVER)
        conversation.prompt = found
        conversation.owns = found is new and not self._hands_over
        if found is not new:
            question = replace(conversation.session.question, challenge_id=found.id)
            conversation.session = session or replace(conversation.session, question=question)
            conversation.handle, conversation.text = found.handle, found.text
            conversation.is_signed = found.is_signed
            conversation.deadline = trio.current_time() + found.left_us / SECOND
        return None

    def forget_codes(self, tx: Tx, user: UserKey) -> None:
        repo.forget_codes(tx, self._digest(user))

    def deny(self, tx: Tx, user: UserKey) -> None:
        repo.deny(tx, self._digest(user))

    async def hand_over(self) -> None:
        """See Calls.hand_over. A prompt that no later request can join stays at this node, and is withdrawn as soon as
        its task ends."""
        self._hands_over = True
        for conversation in [each for watched in self._watched.values() for each in watched]:
            if conversation.key is not None or conversation.session.step:
                conversation.owns = False
        if self._store.ready:
            with suppress(StoreError):  # the heartbeats of this node end, so other nodes take over a little later
                await self._store.write_aside(partial(repo.give_up, node=self._node))

    def _new(self, conversation: Conversation) -> Prompt:
        session, key = conversation.session, conversation.key
        step = session.step if session.kind is ChallengeKind.CODE else 0
        left_us = int(min((conversation.deadline - trio.current_time()) * SECOND, LIFETIME_US if step else 2**40))
        handle = "" if step else session.handle
        return Prompt(
            id=session.id,
            step=step,
            is_signed=conversation.is_signed,
            key="" if key is None else self._digest((conversation.attached.stamp, *key)),
            owner=self._node,
            waiter=self._node,
            outcome=Outcome.WAITING if handle else "",
            handle=handle,
            text="",
            is_consumed=False,
            left_us=left_us,
            has_owner=True,
        )

    def _digest(self, key: LoginKey) -> str:
        """Return a hash of a key, for a column of the table `prompts`. The key consists of texts, numbers and tuples of
        them."""
        return self._vault.digest(repr(key).encode(), "prompts")

    async def return_here(self, conversation: Conversation) -> bool:
        prompt = conversation.prompt
        assert prompt is not None  # noqa: S101  it was read from the store
        moved = await self._store.write_aside(partial(repo.move, prompt=prompt, node=self._node))
        if moved is None:
            return False
        self._read.discard(prompt.id)
        conversation.elsewhere = False
        self._see(conversation, moved)
        return True

    def approved(self, conversation: Conversation) -> None:
        """Return None: `repo.deny` changes the row of the prompt."""

    def once(
        self, result: SecondFactorResult, write: Callable[[Tx], None] | None
    ) -> Callable[[Tx], bool | None] | None:
        return write if result.prompt is None else partial(_use, result=result, node=self._node, write=write)

    async def consume(self, result: SecondFactorResult) -> bool:
        use = self.once(result, None)
        return use is None or await self._store.write_aside(use) is not False

    # --- the outcome ------------------------------------------------------------------------------------------

    async def outcome(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        prompt = conversation.prompt
        assert prompt is not None  # noqa: S101  `claim` has set it
        watched = self._watched[prompt.id]
        watched[conversation] = trio.Event()
        self._read.discard(prompt.id)
        try:
            while True:
                if prompt.is_answered:
                    return _answer_of(prompt)
                if prompt.is_consumed:
                    raise AnsweredElsewhere
                if conversation.owns or await self._take_over(conversation, prompt):
                    with suppress(_NotOwner):
                        return await self._ask(conversation, begin)
                    conversation.owns = False
                await watched[conversation].wait()
                watched[conversation] = trio.Event()
                prompt = conversation.prompt or prompt
        except StoreError:
            self._note_failed(prompt)
            raise
        finally:
            del watched[conversation]
            if not watched:
                del self._watched[prompt.id]

    async def _take_over(self, conversation: Conversation, prompt: Prompt) -> bool:
        """Take over a prompt if its owner is dead, or if this node is the owner but its task for the prompt has failed.
        Return whether this node has taken over the prompt."""
        is_lost = (prompt.id, prompt.step) not in self._owned if prompt.owner == self._node else not prompt.has_owner
        if self._hands_over or not is_lost:
            return False
        taken = await self._store.write_aside(partial(repo.take_over, prompt=prompt, node=self._node))
        if taken is None:
            return False
        log.info("prompt_taken_over", provider=conversation.attached.name, asked_again=not taken.handle)
        conversation.prompt, conversation.owns = taken, True
        return True

    async def _ask(self, conversation: Conversation, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask the provider as the owner of a prompt. Raises _NotOwner if another node owns the prompt now."""
        prompt = conversation.prompt
        assert prompt is not None  # noqa: S101  `claim` has set it
        step_key = prompt.id, prompt.step
        if prompt.handle:
            begin = partial(conversation.attached.provider.poll, prompt.handle, deadline_s=POLL_S)
        self._owned.add(step_key)
        self._failed.discard(step_key)
        try:
            answer = await super().outcome(conversation, begin)
            await self._keep(conversation, answer.outcome, answer.handle, answer.text, answer.strength)
        except ProviderError as error:
            outcome = LIMITED if error.limited else FAILED
            await self._keep(conversation, outcome, conversation.handle, conversation.text)
            raise
        else:
            return answer
        finally:
            self._owned.discard(step_key)

    async def _waits(self, conversation: Conversation, answer: Answer) -> None:
        """Record a WAITING answer. When this returns, the store has the handle of the answer."""
        await super()._waits(conversation, answer)
        prompt = conversation.prompt
        if prompt is None or answer.handle != prompt.handle:
            await self._keep(conversation, Outcome.WAITING, answer.handle, answer.text)

    async def _keep(
        self, conversation: Conversation, outcome: str, handle: str, text: str, strength: Strength = Strength.ANY
    ) -> None:
        prompt = conversation.prompt
        assert prompt is not None  # noqa: S101  `claim` has set it
        own = replace(prompt, owner=self._node)
        kept = await self._store.write_aside(
            partial(repo.answered, prompt=own, outcome=outcome, handle=handle, text=text, strength=strength)
        )
        if kept is None:
            raise _NotOwner
        self._see(conversation, kept)

    # --- prompts of other nodes -------------------------------------------------------------------------------

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_due)
            nursery.start_soon(self._release_failed)
            while True:
                await trio.sleep(FOLLOW_S)
                self._look({each for each, watched in self._watched.items() if not all(c.owns for c in watched)})

    def _note_failed(self, prompt: Prompt) -> None:
        if len(self._failed) < MAX_FAILED:
            self._failed.add((prompt.id, prompt.step))

    async def _release_failed(self) -> None:
        """Once a second, give up the prompts whose task has failed, for example because the result of a commit was
        lost. The login may wait at another node, which takes the prompt over."""
        while True:
            await trio.sleep(FOLLOW_S)
            if failed := sorted(self._failed):
                with suppress(StoreError):  # tried again in a second
                    await self._store.write_aside(partial(repo.give_up, node=self._node, only=failed))
                    self._failed.difference_update(failed)

    def _changed(self, change: ForeignChange) -> None:
        """Schedule a read of the prompts that another node has changed. If the kind of the change is empty, any prompt
        may have changed."""
        if change.kind in ("", PROMPTS):
            self._look({change.row} & self._watched.keys() if change.kind else set(self._watched))

    def _look(self, ids: set[str]) -> None:
        if ids:
            self._due |= ids
            self._news.set()

    async def _read_due(self) -> None:
        while True:
            await self._news.wait()
            self._news = trio.Event()
            self._read, self._due = self._due, set()
            try:
                found = await self._store.read(partial(repo.read, ids=sorted(self._read)))
            except StoreError as error:  # these prompts are read again in a second
                log.debug("prompts_not_read", error=str(error))
                continue
            by_place = {(each.id, each.step): each for each in found}
            for conversation in [each for id_ in self._read for each in self._watched.get(id_, ())]:
                before = conversation.prompt
                assert before is not None  # noqa: S101  `claim` has set it
                self._see(conversation, by_place.get((before.id, before.step)) or replace(before, is_consumed=True))

    def _see(self, conversation: Conversation, prompt: Prompt) -> None:
        """Record the state of a prompt that was read from the store. If the prompt's row no longer exists, for example
        after a restore, the caller passes the prompt as used."""
        conversation.prompt = prompt
        if not conversation.owns:
            conversation.handle, conversation.text = prompt.handle, prompt.text
        if prompt.is_consumed or prompt.waiter != self._node:
            conversation.move_away()
        if (event := self._watched.get(prompt.id, {}).get(conversation)) is not None:
            event.set()


class SharedChallenges(Challenges):
    """The challenges of several nodes. The last step of each challenge is in the store. It expires by the database's
    clock."""

    async def find(self, challenge_id: str) -> Session | None:
        """Return the last challenge with this id, or None. A challenge inside EAP is only in memory, because the EAP
        conversation stays at its node."""
        stored = await self._store.read_now(partial(repo.sent, challenge_id=challenge_id))
        if stored is None:
            return None if challenge_id in self._over else self._sessions.get(challenge_id)
        session, left_us = stored
        return replace(session, expires_at=self._clock() + left_us)

    def keep(self, result: SecondFactorResult) -> Callable[[Tx], None] | None:
        if result.session is None:
            return super().keep(result)
        self._sessions.pop(result.session.id)
        return partial(repo.send, session=result.session)

    async def purge(self, now: int) -> None:
        """Delete expired challenges and prompts, in memory and in the store. Raises StoreError."""
        self._forget_expired(now)
        await self._store.write(repo.purge)


def _use(tx: Tx, result: SecondFactorResult, node: str, write: Callable[[Tx], None] | None) -> bool:
    """Mark a result as used, in the transaction of its answer. Return False if another node may answer instead.

    A challenge that only waits for the user's approval leaves the result unused, because the request that answers the
    challenge needs the result.
    """
    assert result.prompt is not None  # noqa: S101  `once` checks it
    waits = result.session is not None and result.session.kind is ChallengeKind.APPROVAL
    if not (repo.holds if waits else repo.consume)(tx, result.prompt, node):
        return False
    if write is not None:
        write(tx)
    return True


def _answer_of(prompt: Prompt) -> Answer:
    """Return the outcome that the owner has stored. Raises ProviderError if the owner could not ask the provider."""
    if prompt.outcome in (FAILED, LIMITED):
        raise ProviderError(
            "the node that owns this prompt could not ask the provider", limited=prompt.outcome == LIMITED
        )
    return Answer(Outcome(prompt.outcome), prompt.handle, prompt.text, strength=prompt.strength)

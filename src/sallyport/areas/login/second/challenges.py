"""Pending challenges. Each is in memory and in the store.

A challenge is stored in the same transaction as the event of its login. It is deleted in the same transaction as the
event of the login that answers it. So a State survives a restart, but can be used only once. The copy in memory saves a
read for each answer. Memory also contains the ids of ended challenges, until their State expires.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from sallyport.areas.login.login import Reason
from sallyport.areas.login.second import session as sessions
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.session import LIFETIME_US, ChallengeKind, Session
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock
from sallyport.base.text import fold_name
from sallyport.radius.attributes import REPLY_MESSAGE, STATE, push_attribute
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

MAX_TEXT: Final = 253
MAX_REMEMBERED: Final = 32_768


class Challenges:
    """The challenges of all domains. All pending challenges are in the store; memory is a cache.

    max_remembered: the maximum number of pending challenges in memory. The same maximum applies to the ended challenges
    in memory. Each tenant has a share.
    """

    def __init__(self, store: Store, vault: Vault, clock: Clock, *, max_remembered: int = MAX_REMEMBERED) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._sessions = BoundedMap[str, Session](max_remembered)  # the last step of each
        self._over = BoundedMap[str, int](max_remembered)  # expiry of the State of an ended challenge

    def __len__(self) -> int:
        """Return the number of pending and ended challenges in memory."""
        return len(self._sessions) + len(self._over)

    # --- challenges that are sent -------------------------------------------------------------------------------

    def next_step(self, before: Session, kind: ChallengeKind, handle: str, text: str) -> SecondFactorResult:
        """Return a result that contains the next challenge of a session. before: the session as it was at the last
        challenge. kind: the kind of answer that the user must give. handle: the provider's handle of the prompt. text:
        the text that the device shows."""
        expires_at = self._clock() + LIFETIME_US
        session = replace(before, kind=kind, handle=handle, step=before.step + 1, expires_at=expires_at)
        return SecondFactorResult(Reason.ASKED, text, session, asked=session.asked)

    def sent(self, session: Session, tenant_id: int) -> None:
        """Remember a challenge that is sent, so that the next request finds it in memory."""
        self._sessions.put(session.id, session, tenant_id)

    def attributes(self, result: SecondFactorResult) -> bytes:
        """Return the encoded attributes of an Access-Challenge: Reply-Message and State (RFC 2865 section 4.4)."""
        assert result.session is not None  # noqa: S101  a challenge has one
        text = result.text.encode(errors="replace")[:MAX_TEXT].decode(errors="ignore").encode()
        state = sessions.seal_state(self._vault, result.session)
        return push_attribute(REPLY_MESSAGE, text) + push_attribute(STATE, state)

    def keep(self, result: SecondFactorResult) -> Callable[[Tx], None] | None:
        """Return a function that stores a new challenge, or deletes an ended one, in the transaction of the answer.
        Return None if there is nothing to write."""
        if result.session is not None:
            return partial(sessions.write, session=result.session)
        return partial(sessions.delete, challenge_id=result.over) if result.over else None

    # --- answered ---------------------------------------------------------------------------------------------

    def named(self, domain_id: int, state: bytes) -> tuple[str, int] | None:
        """Return the challenge id and the step in a State. Return None if the State does not belong to a challenge of
        this domain."""
        return sessions.open_state(self._vault, state, domain_id)

    async def find(self, challenge_id: str) -> Session | None:
        """Return the last challenge with this id, from memory or from the store. Return None if the challenge has ended
        or never existed. Raises StoreError."""
        known = self._sessions.get(challenge_id)
        if known is None and challenge_id not in self._over:
            known = await self._store.read(lambda tx: sessions.read(tx, challenge_id))
            known = self._sessions.get(challenge_id) or known  # meanwhile another request has continued it
        return None if challenge_id in self._over else known

    async def sessions_of(self, domain_id: int, user: str) -> list[Session]:
        """Return the pending challenges of a user. Raises StoreError."""
        now = self._clock()
        return await self._store.search(lambda tx: sessions.sessions_of_user(tx, domain_id, user, now))

    def ended(self, session: Session, tenant_id: int) -> None:
        """Mark a challenge as ended, because the user has answered it."""
        self._sessions.pop(session.id)
        self._over.put(session.id, session.expires_at, tenant_id)

    def deny(self, tx: Tx, domain_id: int, user: str) -> None:
        """Refuse the answers to a user's pending challenges, in the transaction of the user's denial."""
        sessions.deny(tx, domain_id, user, self._clock())

    def denied(self, domain_id: int, user: str) -> None:
        """Refuse the answers to a user's pending challenges that are in memory, after the commit of the denial."""
        key = fold_name(user)
        for session in self._sessions.values():
            if session.question.domain_id == domain_id and fold_name(session.question.user) == key:
                self._sessions.renew(session.id, replace(session, kind=ChallengeKind.DENIED))

    # --- over time --------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Forget the pending challenges, because the store was replaced."""
        self._sessions.clear()

    async def purge(self, now: int) -> None:
        """Delete expired challenges, in memory and in the store. Raises StoreError."""
        self._forget_expired(now)
        await self._store.write(partial(sessions.purge, now=now))

    def _forget_expired(self, now: int) -> None:
        self._over.pop_oldest_while(lambda until: until <= now)
        self._sessions.pop_oldest_while(lambda session: session.expires_at <= now)

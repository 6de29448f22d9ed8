"""One prompt for one challenge, for a provider whose service has no idempotency keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from sallyport.base.bounded import ExpiringMap
from sallyport.mfa.provider import Answer, Outcome

_REMEMBERED: Final = 10_000
KEPT_S: Final = 300.0  # longer than any login lasts


class Once:
    """The answers that started the last challenges, in this process; after a restart the store has their handles.

    Only answers with a prompt or a handle are kept: asking again for a refusal sends no prompt. An answer is kept for
    KEPT_S, since its handle may be a secret.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._answers = ExpiringMap[str, Answer](remembered, KEPT_S)
        self._beginning: dict[str, trio.Event] = {}

    async def start(self, challenge_id: str, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of `begin`, which runs once for a challenge_id. A call that comes while it runs waits for
        it, and runs it again if it fails or is cancelled. Raises what `begin` raises."""
        while (running := self._beginning.get(challenge_id)) is not None:
            await running.wait()
        known = self._answers.get(challenge_id, now=trio.current_time())
        if known is not None:
            return known
        done = self._beginning[challenge_id] = trio.Event()
        try:
            answer = await begin()
            if answer.outcome is Outcome.WAITING or answer.handle:
                self._answers.put(challenge_id, answer, now=trio.current_time())
        finally:
            del self._beginning[challenge_id]
            done.set()
        return answer

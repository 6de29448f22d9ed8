"""Clients that stop answering in the middle of EAP. There is no decision to keep, so the log alone tells of them: most
often such a client does not trust the server certificate, and many say so to nobody."""

import math
from collections.abc import Callable
from typing import Final

import structlog

from sallyport.login.eap.login import EapLogin
from sallyport.radius.packet import as_text

TOLD_S: Final = 1.0
"""Between two lines: who begins thousands and leaves them fills no log."""

log = structlog.get_logger()


class Unfinished:
    """Tells of conversations that were given up. now: seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._told_at = -math.inf
        self._untold = 0

    def note(self, eap: EapLogin) -> None:
        """Nobody has gone on with a conversation for too long. One that was decided is no news."""
        conversation = eap.conversation
        if not conversation.waits_for_client or eap.refused is not None:
            return
        if self._now() < self._told_at + TOLD_S:
            self._untold += 1
            return
        log.info(
            "an EAP client has stopped answering",
            client=eap.client,
            user=eap.user or as_text(conversation.identity),
            method=f"eap-{conversation.method}".rstrip("-"),
            others=self._untold,
        )
        self._told_at, self._untold = self._now(), 0

"""A login by EAP and its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from sallyport.login.eap.verifiers import Verifier
from sallyport.login.login import NOTHING, Decision, Found, Reason
from sallyport.login.second.session import Session
from sallyport.mfa.provider import Code
from sallyport.radius.eap.certificate import NamedBy
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.model import Check
from sallyport.radius.packet import as_text

LOG_INTERVAL_S: Final = 1.0
"""Seconds between two log lines, so that thousands of abandoned conversations do not fill the log."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class InnerSecondFactor:
    """The result of a second factor inside EAP. reason: None if none was asked for. refusal: the decision, if it is
    refused. session: of the challenge that asks for a code with `prompt`."""

    reason: Reason | None = None
    refusal: Decision | None = None
    session: Session | None = None
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class EapResult:
    """The end of a login by EAP.

    first: the first factor's result. second: that of the second factor, if it was asked for inside. refusal: the
    decision, if the second factor refused the login. by_address: whether a station has shown its address. stamp: of the
    right password.
    """

    first: Reason
    second: Reason | None = None
    refusal: Decision | None = None
    by_address: bool = False
    stamp: str = ""


@dataclass(slots=True, eq=False, repr=False)
class EapLogin:
    """A conversation and the state of its login.

    scope: the domain and first factor of its users. client: the RADIUS client that forwards it. refused: the result of
    a refused login. decided: whether its decision was made; the rounds until EAP-Failure then add nothing. named_by:
    see `Login`. found, code, stamp: of the first factor. session: of the challenge that the user answers next. second:
    the result of the second factor.
    """

    conversation: Conversation
    scope: str
    verifier: Verifier
    client: str
    user: str = ""
    named_by: NamedBy | None = None
    found: Found = NOTHING
    code: Code | None = None
    stamp: str = ""
    session: Session | None = None
    second: Reason | None = None
    refused: EapResult | None = None
    decided: bool = False


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question whose answer needs a look-up. state: names the conversation."""

    eap: EapLogin
    state: bytes
    check: Check


class Unfinished:
    """Logs abandoned conversations. now: seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logged_at = -math.inf
        self._suppressed = 0

    def note(self, eap: EapLogin) -> None:
        """Log a conversation whose client has stopped answering, unless it was decided before."""
        conversation = eap.conversation
        if not conversation.waits_for_client or eap.refused is not None:
            return
        if self._now() < self._logged_at + LOG_INTERVAL_S:
            self._suppressed += 1
            return
        log.info(
            "eap_client_stopped_answering",
            client=eap.client,
            user=eap.user or as_text(conversation.identity),
            method=f"eap-{conversation.method}".rstrip("-"),
            others=self._suppressed,
        )
        self._logged_at, self._suppressed = self._now(), 0

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
"""Minimum time between two log lines in seconds, so that thousands of abandoned conversations do not flood the log."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class InnerSecondFactor:
    """The result of a second factor inside EAP. reason: the result; None if the user was not asked for a second factor.
    refusal: the decision, if the login is refused. session: the challenge that asks for a code, with the text `prompt`;
    None if there is none."""

    reason: Reason | None = None
    refusal: Decision | None = None
    session: Session | None = None
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class EapResult:
    """The result of a login by EAP.

    first: the result of the first factor. second: the result of the second factor, if it was asked for inside EAP, else
    None. refusal: the decision, if the second factor refused the login. by_address: whether the login is that of a
    station that is admitted by its MAC address. stamp: see `verifiers.Finding`.
    """

    first: Reason
    second: Reason | None = None
    refusal: Decision | None = None
    by_address: bool = False
    stamp: str = ""


@dataclass(slots=True, eq=False, repr=False)
class EapLogin:
    """A conversation and the state of its login.

    scope: the domain and first factor of its users. client: the name of the RADIUS client. user: the inner name without
    its realm; empty if it is not known yet. refused: the result of a refused login. decided: whether the refusal was
    returned; the further rounds until EAP-Failure are not recorded. named_by: see `Login`. found, code, stamp: from the
    first factor, see `verifiers.Finding`. session: the challenge that the user answers next. second: the result of the
    second factor.
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
    """A question whose answer needs a look-up. state: the State of the conversation."""

    eap: EapLogin
    state: bytes
    check: Check


class Unfinished:
    """The log of abandoned conversations. now: returns seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logged_at = -math.inf
        self._suppressed = 0

    def note(self, eap: EapLogin) -> None:
        """Log a conversation whose client has stopped answering, unless the login was refused before."""
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

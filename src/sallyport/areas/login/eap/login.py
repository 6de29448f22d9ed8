"""The state of a login by EAP, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from sallyport.areas.login.eap.ending import Ending
from sallyport.areas.login.eap.verifiers import Verifier
from sallyport.areas.login.login import NO_WAITS, NOTHING, Decision, Found, Reason, Waits
from sallyport.areas.login.second.session import Session
from sallyport.areas.mfa.provider import Code
from sallyport.areas.policy.rules.rule import Rule
from sallyport.radius.eap.certificate import NamedBy
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.model import Check
from sallyport.radius.packet import as_text

LOG_INTERVAL_S: Final = 1.0
"""The minimum time between two log entries, in seconds. Without it, thousands of abandoned conversations would flood
the log."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class InnerSecondFactor:
    """The result of asking for the second factor inside an EAP conversation.

    reason: the result, or None if the login needs no second factor. refusal: the decision if the login is refused.
    session: the challenge in which the user must enter a code, or None. prompt: the text that asks the user for the
    code.
    """

    reason: Reason | None = None
    refusal: Decision | None = None
    session: Session | None = None
    prompt: str = ""

    @property
    def is_asked(self) -> bool:
        """Whether the login needed a second factor, so that the provider or the user was asked."""
        return self.reason is not None or self.session is not None


@dataclass(frozen=True, slots=True)
class EapResult:
    """The result of a login by EAP.

    first: the result of the first factor. second: the result of the second factor if the user was asked inside EAP,
    else None. refusal: the decision if the second factor has refused the login. rule: the login rule that has led to
    the refusal, or None. by_address: whether the station was admitted by its MAC address. stamp: the value of
    `verifiers.Finding.stamp`. ending: the same as `EapLogin.ending`.
    """

    first: Reason
    second: Reason | None = None
    refusal: Decision | None = None
    rule: Rule | None = None
    by_address: bool = False
    stamp: str = ""
    ending: Ending | None = None


@dataclass(slots=True, eq=False, repr=False)
class EapLogin:
    """An EAP conversation and the state of its login.

    scope: an identifier of the domain and its first factor. client: the name of the RADIUS client. user: the inner name
    without its realm, or empty if it is unknown so far. named_by: the field of the certificate that contains the name.
    found, code, stamp: the fields of the same names in the `verifiers.Finding` of the first factor. session: the
    challenge that the user must answer next. second: the result of the second factor. rule: the login rule that asked
    for the second factor, or None. waits: the time for which the login has waited. refused: the result if the login is
    refused. decided: whether `refused` was given to the caller. The rounds after the refusal, until EAP-Failure, are
    not recorded. ending: the end of the conversation, or None before it. It is also None if the second factor was asked
    for inside EAP.
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
    rule: Rule | None = None
    waits: Waits = NO_WAITS
    refused: EapResult | None = None
    decided: bool = False
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question about credentials whose answer must be looked up in the store or a directory. state: the value of the
    State attribute that identifies the conversation."""

    eap: EapLogin
    state: bytes
    check: Check


class Unfinished:
    """The log of the conversations that clients abandon, limited to one entry per interval. now: a function that
    returns the seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logged_at = -math.inf
        self._suppressed = 0

    def note(self, eap: EapLogin) -> None:
        """Log a conversation whose client has stopped answering. Refused logins are left out."""
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

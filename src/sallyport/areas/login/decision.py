"""The decision on a login, and the attributes of its Access-Reject.

`decide` decides live logins in both modes, and also serves the impact preview. It applies these steps in order:

    first factor   failed: reject, in both modes
    rules          allow: accept; block: reject; mfa_required: depends on the second factor
    second factor  approved: accept; pending: challenge; otherwise: reject. If the user cannot be asked, fallbackAction
                   decides
    mode           enforce applies the verdict; monitor only records it, and accepts if the first factor has passed.
                   A domain with the first factor `web` always enforces, and its fallback is always deny

A limit of parallel sessions is checked later, in the transaction that stores the answer (`limit`, `over_limit`).
"""

from functools import cache
from secrets import token_bytes
from typing import Final

from sallyport.areas.domains.domain import WEB, Domain, Fallback, Mode
from sallyport.areas.login.login import Decision, Login, Reason, Verdict
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action
from sallyport.radius.attributes import EAP_MESSAGE
from sallyport.radius.eap.packet import FAILURE, end, push_eap_message
from sallyport.radius.mschap import Unusable, recognise
from sallyport.radius.mschap_reply import ErrorCode, push_error
from sallyport.radius.password import Method

CHALLENGES: Final = frozenset({Reason.ASKED, Reason.ASKED_AGAIN, Reason.ENROLMENT_UNKNOWN})
"""The results of a second factor after which the user gets a challenge. In monitor mode no challenge is sent; the event
records that enforce mode would send one."""
CANNOT_ASK: Final = frozenset(
    {
        *(Reason.NO_PROVIDER, Reason.UNREACHABLE, Reason.RATE_LIMITED, Reason.CIRCUIT_OPEN, Reason.UNREADABLE),
        Reason.STOPPED,
    }
)
"""The reasons why a user could not be asked for the second factor. Only for these reasons does fallbackAction decide.
"""
NOT_CHECKED: Final = {
    Reason.FIRST_FACTOR_UNREACHABLE: "unreachable",
    Reason.FIRST_FACTOR_UNREADABLE: "unreadable",
    Reason.FIRST_FACTOR_UNAVAILABLE: "unavailable",
}
"""The reasons why the first factor could not check a login, each with its label value in metrics."""

ROUND: Final = Decision(Verdict.CHALLENGE, Verdict.CHALLENGE, "", Reason.NONE, "", "")
"""A placeholder that stands for "no decision yet", used while the first factor exchanges further messages with the
client.

The answer is a challenge with the attributes in `login.found.challenge`. If the login was refused in an earlier round,
the last answer is an Access-Reject with the attributes in `login.found.refuse`. If the request repeats the end of an
accepted login by EAP, the answer is the same Access-Accept, with `login.attributes` and `login.found.keys`.
"""

LOCKED: Final = {LockoutKind.USER: Reason.LOCKED_OUT, LockoutKind.STATION: Reason.STATION_LOCKED_OUT}
"""The reason of a refusal by each kind of lock."""
_CODES: Final = {
    Reason.ACCOUNT_DISABLED: ErrorCode.ACCOUNT_DISABLED,
    Reason.ACCOUNT_EXPIRED: ErrorCode.ACCOUNT_DISABLED,
    Reason.ACCOUNT_LOCKED: ErrorCode.ACCOUNT_DISABLED,
    Reason.LOGON_RESTRICTED: ErrorCode.RESTRICTED_LOGON_HOURS,
    Reason.PASSWORD_EXPIRED: ErrorCode.PASSWORD_EXPIRED,
    Reason.PASSWORD_MUST_CHANGE: ErrorCode.PASSWORD_EXPIRED,
    Reason.CHANGES_PASSWORD: ErrorCode.CHANGING_PASSWORD,
    Reason.BLOCKED: ErrorCode.NO_DIALIN_PERMISSION,
    Reason.TOO_MANY_SESSIONS: ErrorCode.NO_DIALIN_PERMISSION,
}
_MAY_RETRY: Final = frozenset({Reason.WRONG_PASSWORD, Reason.UNKNOWN_USER})


@cache
def decide(first: Reason, action: Action, second: Reason, mode: Mode, fallback: Fallback) -> Decision:
    """Return the decision on a login.

    first: the result of the first factor; NONE if it has passed. action: the action of the login rules. second: the
    result of the second factor; NONE if the user has approved. `second` is ignored if the first factor has failed or
    the action is not mfa_required.
    """
    verdict, reason = _verdict(first, action, second, fallback)
    monitored = mode is Mode.MONITOR
    applied = Verdict.ACCEPT if monitored and first is Reason.NONE else verdict
    would_have_been = verdict.value if monitored else ""
    return Decision(verdict, applied, would_have_been, reason, mode.value, _outcome(verdict, applied, reason))


def decide_in(domain: Domain, first: Reason, action: Action, second: Reason) -> Decision:
    """Return the decision on a login of a domain, by its mode and its fallback; see `decide`. action: as `action_in`
    returns it."""
    return decide(first, action, second, domain.applied_mode, domain.applied_fallback)


def action_in(domain: Domain, action: Action) -> Action:
    """Return the action of a login rule in a domain. With the first factor `web`, the second factor is the only proof,
    so that `allow` is `mfa_required`."""
    return MFA_REQUIRED if action is Action.ALLOW and domain.first_factor is WEB else action


def refuse(reason: Reason, domain: Domain | None = None) -> Decision:
    """Return the decision to refuse a login that did not pass its first factor. Both modes refuse it."""
    mode = Mode.MONITOR if domain is None else domain.applied_mode
    return decide(reason, UNMATCHED, Reason.NONE, mode, Fallback.DENY)


@cache
def over_limit(decision: Decision) -> Decision:
    """Return the decision on a login that all steps accept, but whose user has too many parallel sessions."""
    is_monitored = decision.mode == Mode.MONITOR
    applied = Verdict.ACCEPT if is_monitored else Verdict.REJECT
    would_have_been = Verdict.REJECT.value if is_monitored else ""
    reason = Reason.TOO_MANY_SESSIONS
    outcome = _outcome(Verdict.REJECT, applied, reason)
    return Decision(Verdict.REJECT, applied, would_have_been, reason, decision.mode, outcome)


def _verdict(first: Reason, action: Action, second: Reason, fallback: Fallback) -> tuple[Verdict, Reason]:
    if first is not Reason.NONE:
        return Verdict.REJECT, first
    if action is Action.BLOCK:
        return Verdict.REJECT, Reason.BLOCKED
    if action is Action.ALLOW or second is Reason.NONE:
        return Verdict.ACCEPT, Reason.NONE
    if second in CHALLENGES:
        return Verdict.CHALLENGE, second
    let_in = second in CANNOT_ASK and fallback is Fallback.ALLOW
    return (Verdict.ACCEPT if let_in else Verdict.REJECT), second


def _outcome(verdict: Verdict, applied: Verdict, reason: Reason) -> str:
    """Return the label value for the metric sallyport_mfa_decisions_total, or an empty text if the decision is not
    final."""
    if applied is Verdict.CHALLENGE:
        return ""
    if reason in CANNOT_ASK and verdict is Verdict.ACCEPT:
        return "bypass"
    if applied is not verdict:
        return "would_deny" if verdict is Verdict.REJECT else "allow"
    if reason in CANNOT_ASK:
        return "error"
    return "allow" if applied is Verdict.ACCEPT else "deny"


def refusal(login: Login, reason: Reason) -> bytes:
    """Return the encoded attributes of a login's Access-Reject.

    If the first factor has provided attributes, these are returned. Otherwise they follow from the authentication
    method: EAP-Failure for EAP, MS-CHAP-Error for MS-CHAP. reason: the reason for the refusal.
    """
    if login.found.refuse:
        return login.found.refuse
    if EAP_MESSAGE in login.arrival.request.first:
        response = login.arrival.request.first[EAP_MESSAGE]
        return push_eap_message(end(FAILURE, response[1] if len(response) > 1 else 0))
    if login.method in (Method.MSCHAP, Method.MSCHAP2):
        offer = recognise(login.arrival.request.vendor_values())
        if offer is not None and not isinstance(offer, Unusable):
            return push_error(offer, mschap_error(reason), challenge=token_bytes(16), retry=reason in _MAY_RETRY)
    return b""


def mschap_error(reason: Reason) -> ErrorCode:
    """Return the MS-CHAP error code that tells the client the reason for a refusal."""
    return _CODES.get(reason, ErrorCode.AUTHENTICATION_FAILURE)

"""Tests of the decision function: every cell of its table, and the two modes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.domains.domain import Domain, Fallback, FirstFactor, Mode
from sallyport.areas.login.decision import NOT_CHECKED, action_in, decide, over_limit, refusal, refuse
from sallyport.areas.login.login import Found, Reason, Verdict
from sallyport.areas.policy.rules.rule import Action
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from tests.areas.login.conftest import FakeListener
from tests.packets import access_request, pap

# The decision for a login with a right first factor, by the action of the rules and the outcome of the second factor.
# Each cell has the verdict if the fallback denies, the verdict if it allows, and the metric's label for each of them.
TABLE = """
allow         *                                                  accept     accept     allow   allow
block         *                                                  reject     reject     deny    deny
mfa_required  (approved)                                         accept     accept     allow   allow
mfa_required  second factor asked for                            challenge  challenge  -       -
mfa_required  enrolment not known yet                            challenge  challenge  -       -
mfa_required  second factor denied                               reject     reject     deny    deny
mfa_required  not me                                             reject     reject     deny    deny
mfa_required  unbound login                                      reject     reject     deny    deny
mfa_required  code not returned                                  reject     reject     deny    deny
mfa_required  no identity provider has confirmed the user        reject     reject     deny    deny
mfa_required  wrong code, asked again                            challenge  challenge  -       -
mfa_required  wrong code                                         reject     reject     deny    deny
mfa_required  not enrolled                                       reject     reject     deny    deny
mfa_required  not strong enough                                  reject     reject     deny    deny
mfa_required  this kind of login cannot ask for a code           reject     reject     deny    deny
mfa_required  second factor not answered in time                 reject     reject     deny    deny
mfa_required  device gives up sooner than the provider answers   reject     reject     deny    deny
mfa_required  too many prompts                                   reject     reject     deny    deny
mfa_required  the provider takes no more codes for now           reject     reject     deny    deny
mfa_required  the challenge is unknown, over or another's        reject     reject     deny    deny
mfa_required  no provider                                        reject     accept     error   bypass
mfa_required  provider unreachable                               reject     accept     error   bypass
mfa_required  the provider's rate limit is reached               reject     accept     error   bypass
mfa_required  provider unreachable, circuit open                 reject     accept     error   bypass
mfa_required  provider configuration unreadable                  reject     accept     error   bypass
mfa_required  the service was stopped before the second factor was answered  reject  accept  error  bypass
"""
FIRST = [
    Reason.WRONG_PASSWORD, Reason.WRONG_PASSWORD_OR_SECRET, Reason.UNKNOWN_USER, Reason.UNKNOWN_REALM,
    Reason.NO_USER_NAME, Reason.NO_DOMAIN,
    Reason.UNKNOWN_STATION,
    Reason.NO_CREDENTIALS, Reason.FIRST_FACTOR_UNAVAILABLE, Reason.FIRST_FACTOR_UNREADABLE, Reason.FIRST_FACTOR_CHANGED,
    Reason.FIRST_FACTOR_UNREACHABLE, Reason.DIRECTORY_ENTRY_TOO_LARGE, Reason.CHANGES_PASSWORD, Reason.METHOD_UNFIT,
    Reason.ACCOUNT_UNCLEAR, Reason.DIRECTORY_STALE,
    Reason.UNCHECKED_UNSIGNED,
    Reason.MAY_NOT_VOUCH, Reason.VOUCHES_UNSIGNED, Reason.ACCOUNT_LOCKED, Reason.ACCOUNT_DISABLED,
    Reason.ACCOUNT_EXPIRED, Reason.PASSWORD_EXPIRED, Reason.PASSWORD_MUST_CHANGE, Reason.LOGON_RESTRICTED,
    Reason.NO_SERVER_CERTIFICATE, Reason.METHOD_NOT_OFFERED, Reason.SERVER_UNTRUSTED, Reason.CERTIFICATE_REFUSED,
    Reason.TLS_FAILED, Reason.EAP_BROKEN, Reason.PROXY_LOOP, Reason.LOCKED_OUT, Reason.MAY_NOT_SPEAK,
    Reason.NO_STRONG_NAME, Reason.CERTIFICATE_REVOKED, Reason.REVOCATION_UNKNOWN,
    Reason.STATION_LOCKED_OUT, Reason.REFUSED_UPSTREAM,
    Reason.DOMAIN_REMOVED, Reason.CHALLENGE_OVER,
]  # fmt: skip
OF_RULES = (Reason.BLOCKED, Reason.TOO_MANY_SESSIONS)
SECOND = [Reason.NONE, *[each for each in Reason if each not in FIRST and each not in OF_RULES], FIRST[-1]]


def cells() -> dict[tuple[Action, Reason, Fallback], tuple[str, str]]:
    """The table, which maps (action, second factor, fallback) to (verdict, metric)."""
    found: dict[tuple[Action, Reason, Fallback], tuple[str, str]] = {}
    for line in TABLE.strip().splitlines():
        action, rest = line.split(maxsplit=1)
        second, deny, allow, label_deny, label_allow = rest.rsplit(maxsplit=4)
        reasons = SECOND if second == "*" else [Reason.NONE if second == "(approved)" else Reason(second)]
        for reason in reasons:
            found[Action(action), reason, Fallback.DENY] = deny, label_deny
            found[Action(action), reason, Fallback.ALLOW] = allow, label_allow
    return found


CELLS = cells()


def test_the_table_is_whole() -> None:
    """Every combination of action, outcome of the second factor and fallback has a cell, and there are no
    other cells."""
    assert set(CELLS) == set(product(Action, dict.fromkeys(SECOND), Fallback))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(part.name for part in cell).lower())
def test_each_combination_has_its_decision(cell: tuple[Action, Reason, Fallback]) -> None:
    """Enforce mode applies the verdict. Monitor mode accepts the login and records the verdict."""
    action, second, fallback = cell
    verdict, label = CELLS[cell]
    enforce = decide(Reason.NONE, action, second, Mode.ENFORCE, fallback)
    monitor = decide(Reason.NONE, action, second, Mode.MONITOR, fallback)
    reason = {Action.ALLOW: Reason.NONE, Action.BLOCK: Reason.BLOCKED}.get(action, second)
    assert enforce.row == (verdict, verdict, "", reason.value)
    assert monitor.row == (verdict, "accept", verdict, reason.value)
    assert enforce.outcome == label.strip("-")
    assert monitor.outcome == ("would_deny" if verdict == "reject" else label if label == "bypass" else "allow")
    assert (enforce.mode, monitor.mode) == ("enforce", "monitor")


@pytest.mark.parametrize("first", FIRST, ids=lambda reason: reason.name.lower())
def test_a_wrong_first_factor_is_a_reject_in_both_modes(first: Reason) -> None:
    """A wrong first factor rejects the login in both modes, whatever the rules, the second factor and the
    fallback are."""
    for action, second, fallback in CELLS:
        enforce = decide(first, action, second, Mode.ENFORCE, fallback)
        monitor = decide(first, action, second, Mode.MONITOR, fallback)
        assert enforce.row == ("reject", "reject", "", first.value)
        assert monitor.row == ("reject", "reject", "reject", first.value)
        assert enforce.outcome == monitor.outcome == "deny"


@given(
    st.sampled_from([Reason.NONE, *FIRST]),
    st.sampled_from(Action),
    st.sampled_from(SECOND),
    st.sampled_from(Fallback),
)
def test_the_modes_differ_only_in_the_applied_verdict(
    first: Reason, action: Action, second: Reason, fallback: Fallback
) -> None:
    """The decision and the reason are the same in both modes.

    Enforce mode applies the decision; monitor mode accepts the login even if the decision is another one.
    """
    enforce = decide(first, action, second, Mode.ENFORCE, fallback)
    monitor = decide(first, action, second, Mode.MONITOR, fallback)
    assert (enforce.decision, enforce.reason) == (monitor.decision, monitor.reason)
    assert enforce.applied is enforce.decision
    assert monitor.applied in {monitor.decision, Verdict.ACCEPT}
    assert (monitor.would_have_been, enforce.would_have_been) == (monitor.decision.value, "")


def test_decisions_are_few() -> None:
    """Equal checks in the same mode return the same object, so that it can be a key."""
    once = decide(Reason.NONE, Action.ALLOW, Reason.NONE, Mode.ENFORCE, Fallback.DENY)
    assert decide(Reason.NONE, Action.ALLOW, Reason.NONE, Mode.ENFORCE, Fallback.DENY) is once


@pytest.mark.parametrize("action", Action)
def test_a_rule_of_a_web_domain_demands_the_second_factor(action: Action) -> None:
    """With the first factor `web`, `allow` is `mfa_required`. Any other action stays, and so do those of other
    domains."""
    web, local = (Domain(1, 1, "corp", first_factor=first) for first in (FirstFactor.WEB, FirstFactor.LOCAL))
    assert action_in(web, action) is (Action.MFA_REQUIRED if action is Action.ALLOW else action)
    assert action_in(local, action) is action


@pytest.mark.parametrize(
    ("domain", "mode", "would_have_been"),
    [
        (None, "monitor", "reject"),
        (Domain(1, 1, "corp", mode=Mode.MONITOR), "monitor", "reject"),
        (Domain(1, 1, "corp", mode=Mode.ENFORCE), "enforce", ""),
    ],
    ids=["no domain", "monitor", "enforce"],
)
def test_a_login_without_first_factor_is_refused(domain: Domain | None, mode: str, would_have_been: str) -> None:
    """The refusal has the mode of the domain. A login without a domain counts as monitored."""
    decision = refuse(Reason.NO_DOMAIN, domain)
    assert (decision.row, decision.mode) == (("reject", "reject", would_have_been, Reason.NO_DOMAIN), mode)


def test_too_many_sessions() -> None:
    """Enforce mode refuses the login. Monitor mode accepts it, and its metric counts a login that would be refused."""
    enforce, monitor = (
        over_limit(decide(Reason.NONE, Action.ALLOW, Reason.NONE, mode, Fallback.DENY))
        for mode in (Mode.ENFORCE, Mode.MONITOR)
    )
    assert enforce.row == ("reject", "reject", "", Reason.TOO_MANY_SESSIONS)
    assert (enforce.mode, enforce.outcome) == ("enforce", "deny")
    assert monitor.row == ("reject", "accept", "reject", Reason.TOO_MANY_SESSIONS)
    assert (monitor.mode, monitor.outcome) == ("monitor", "would_deny")


async def test_the_attributes_of_a_refusal(listener: FakeListener) -> None:
    """A login by EAP gets the failure of its last message (RFC 3748 section 4.2), which a broken message leaves without
    a number. A login by PAP gets nothing. What the first factor gives is sent instead."""
    by_eap, short, broken = (
        listener.login(access_request(push_attribute(EAP_MESSAGE, message)))
        for message in (b"\x02\x07\x00\x08\x01ann", b"\x02\x07", b"\x02")
    )
    assert refusal(by_eap, Reason.WRONG_PASSWORD) == push_attribute(EAP_MESSAGE, b"\x04\x07\x00\x04")
    assert refusal(short, Reason.WRONG_PASSWORD) == push_attribute(EAP_MESSAGE, b"\x04\x07\x00\x04")
    assert refusal(broken, Reason.WRONG_PASSWORD) == push_attribute(EAP_MESSAGE, b"\x04\x00\x00\x04")
    by_pap = listener.login(pap("ann", "wrong"))
    assert refusal(by_pap, Reason.WRONG_PASSWORD) == b""
    by_eap.found = Found(refuse=b"\x12\x04no")
    assert refusal(by_eap, Reason.WRONG_PASSWORD) == b"\x12\x04no"


def test_the_labels_of_logins_that_were_not_checked() -> None:
    """Alerts name the label of the metric, which is the end of the reason's name."""
    assert {reason: reason.name.removeprefix("FIRST_FACTOR_").lower() for reason in NOT_CHECKED} == NOT_CHECKED

"""Request and response bodies of /ad/PreviewEnforcement, /ad/CheckEnrolments and /ad/TestLoginRules."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, create_model

from sallyport.areas.domains.bodies import AnyFallback
from sallyport.areas.domains.enforcement import DEFAULT_DAYS, MAX_DAYS
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.roles.role import RoleSource
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.facts import Condition
from sallyport.areas.policy.rules.rule import Action
from sallyport.areas.preview.rule_test import Result
from sallyport.base.addresses import parse_address
from sallyport.base.model import Done, Model
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import AddressOrText, Flag, Id, InDomain, Many, Name, Text, Whole

MAX_GROUPS = 200

Days = Annotated[Whole, Between(1, MAX_DAYS)]
Verdict = Literal["accept", "reject", "challenge"]


def _address(value: str) -> str:
    try:
        return str(parse_address(value)) if value else ""
    except ValueError:
        raise unfit("must be an IP address") from None


class ProposedRule(RuleFields):
    """A login rule that is not stored."""

    ruleId: Id | None = Field(
        default=None, description="Id of the rule that would be changed. Absent: the rule would be added."
    )


class PreviewEnforcement(InDomain):
    """Request body of the operation `PreviewEnforcement`."""

    days: Days = Field(
        default=DEFAULT_DAYS, description="Number of past days. The logins of these days are decided again."
    )
    fallbackAction: AnyFallback | None = Field(
        default=None,
        description="Fallback action to decide with, deny or allow. Without it, that of the domain is used.",
    )
    rule: ProposedRule | None = Field(
        default=None,
        description="A rule to decide with as if it were added or changed. This shows its effect before it is stored.",
    )
    pairs: Id = Field(
        default=0,
        description="Decide the newest logins, of about this number of pairs of a user and a device. 0: decide all.",
    )


class CheckEnrolments(InDomain):
    """Request body of the operation `CheckEnrolments`."""

    days: Days = Field(
        default=DEFAULT_DAYS, description="Number of past days. Users with logins on these days are checked."
    )
    again: Flag = Field(default=False, description="Ask about all users, also about those whose enrolment is known.")


def _asked(condition: Condition) -> tuple[object, object]:
    if condition.asks_several:
        return Annotated[Many[Name], Field(max_length=MAX_GROUPS)], Field(default=[], description=condition.asked)
    return Text, Field(default="", description=condition.asked)


_WithFacts = create_model(
    "_WithFacts",
    __base__=InDomain,
    **cast(dict[str, Any], {each.fact: _asked(each) for each in CONDITIONS if each.asked}),
)


class TestLoginRules(_WithFacts):
    """Request body of the operation `TestLoginRules`. If a field is absent, login rules treat this fact of the login as
    unknown."""

    user: Name = Field(description="User name, with or without a realm of the domain; at most 128 octets.")
    client: AddressOrText = Field(
        default="", description="RADIUS client that sends the login: its name or one of its addresses."
    )
    nas: Annotated[Text, AfterValidator(_address)] = Field(
        default="", description="Address of the NAS (NAS-IP-Address), if the NAS is not the sender itself."
    )
    nasIdentifier: Text = Field(default="", description="Name that the NAS sends (NAS-Identifier).")
    station: Text = Field(default="", description="Calling-Station-Id, such as a MAC address.")
    medium: Text = Field(
        default="", description="Medium of the NAS port, such as Wireless. Default: the medium in the inventory."
    )
    serviceType: Text = Field(default="", description="Service-Type by name or number (RFC 2865 section 5.6).")
    groups: Annotated[Many[Name], Field(max_length=MAX_GROUPS)] = Field(
        default=[], description="Groups of the user in addition to the known ones, as an LDAP server would return them."
    )
    ous: Annotated[Many[Name], Field(max_length=MAX_GROUPS)] = Field(
        default=[], description="Organizational units of the user in addition to the known ones."
    )
    at: Text = Field(default="", description="Time of the login, ISO 8601. Default: now.")
    unsigned: Flag = Field(default=False, description="Whether the request has no Message-Authenticator.")

    def values(self, condition: Condition) -> list[str]:
        """Return the given values of a condition's fact. The list is empty if the fact is absent."""
        given = getattr(self, condition.fact)
        return list(given) if condition.asks_several else [given] if given else []


class ReadRule(Model):
    """A login rule that was read before the decision, or that decides."""

    position: int = Field(description="Position in the order in which the domain's rules are read, from 1.")
    ruleId: int = Field(description="Id of the rule.")
    name: str = Field(description="Name of the rule.")
    action: Action = Field(description="Action of the rule.")
    result: Result = Field(
        description="`decides`: the rule decides. `matches`: it matches, but a stricter rule before it decides. `may "
        "match`: a fact is missing; an allow rule is then skipped. `differs`: a scope does not match. "
        "`disabled`: it is not read."
    )
    scope: str = Field(description="The first scope that does not match or lacks its fact; empty if all match.")
    has: str = Field(description="Value of this scope in the login; `not known` if the fact is missing.")


class OpenPrompt(Model):
    """A prompt of a user that waits for an answer."""

    kind: Literal["code", "approval"] = Field(description="Kind of the answer: a code, or an approval on a phone.")
    device: str = Field(description="Name of the device at which the user logs in.")
    source: str = Field(description="Address of that device.")
    station: str = Field(description="Calling-Station-Id; empty if the request has none.")
    expiresAt: str = Field(description="End of the prompt, ISO 8601 UTC.")


class LoginRulesTested(Done):
    """Response body of the operation `TestLoginRules`."""

    domainName: str = Field(description="Name of the domain.")
    user: str = Field(description="User name without a realm.")
    rules: list[ReadRule] = Field(description="Rules in the order in which they are read, up to the one that decides.")
    ruleId: int | None = Field(description="Id of the rule that decides; null if no rule matches.")
    action: Action = Field(
        description="Action of the rule that decides; mfa_required if no rule matches. A station is never asked for a "
        "second factor: it has allow or block."
    )
    bypass: bool = Field(
        description="Whether the station is admitted by its MAC address, without a password and a user."
    )
    lockedOut: bool = Field(description="Whether the user or the station is locked out now.")
    firstFactor: str = Field(description="First factor of the domain.")
    firstFactorReason: str = Field(
        description="Reason why the first factor would refuse any password; empty if a password may pass."
    )
    secondFactor: str = Field(
        description="MFA provider that the rule names, or else the default one of the domain; empty if there is none."
    )
    strength: Strength = Field(description="Minimum strength of the second factor that the rule demands.")
    secondFactorReason: str = Field(
        description="Result of asking the user for a second factor; empty if the user would not be asked."
    )
    enforcementMode: Literal["monitor", "enforce"] = Field(description="Mode of the domain.")
    fallbackAction: Literal["deny", "allow"] = Field(description="Fallback action of the domain.")
    decision: Verdict = Field(description="Decision for a correct password.")
    appliedDecision: Verdict = Field(
        description="Decision that would be sent. It differs from `decision` only in monitor mode."
    )
    reason: str = Field(
        description="Reason for the decision, in words. It is empty if the login is accepted without a special reason."
    )
    openPrompts: list[OpenPrompt] = Field(
        description="Prompts of the user that wait for an answer. Prompts of other nodes are included only if a "
        "challenge was sent."
    )
    warnings: list[str] = Field(description="Warnings about facts that are missing or inconsistent.")
    role: str = Field(description="Role that the rule gives. Empty: none.")
    roleSource: RoleSource | Literal[""] = Field(
        description="Why the NAS gets its set of the role: its `tag`, its `product`, or `default`. `none`: the role "
        "has no set for it. Empty without a role."
    )
    attributes: list[str] = Field(
        description="Attributes that the rule and its role add to an Access-Accept, such as `Filter-Id = staff`."
    )
    maxSessions: int = Field(description="Limit of parallel sessions of the rule that decides; 0 for no limit.")
    parallelSessions: int | None = Field(
        description="Number of parallel sessions that the user has now; null if there is no limit, or it is not "
        "applied."
    )
    sessionLimit: str = Field(description="Effect of the limit on this login, in words; empty if there is none.")

"""Request and response bodies of /ad/PreviewEnforcement, /ad/CheckEnrolments and /ad/TestLoginRules."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sallyport.base.addresses import parse_address
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.domains.enforcement import DEFAULT_DAYS, LONGEST_DAYS
from sallyport.policy.rules.bodies import RuleFields
from sallyport.policy.rules.rule import Action
from sallyport.preview.rule_test import Result
from sallyport.web.operation import Done
from sallyport.web.scope import AddressOrText, Flag, Id, InDomain, Many, Name, Text, Whole

MOST_GROUPS = 200

Days = Annotated[Whole, Between(1, LONGEST_DAYS)]
Verdict = Literal["accept", "reject", "challenge"]


def _address(value: str) -> str:
    try:
        return str(parse_address(value)) if value else ""
    except ValueError:
        raise unfit("an IP address") from None


class ProposedRule(RuleFields):
    """A login rule that is not stored."""

    ruleId: Id | None = Field(
        default=None, description="Id of the rule that would be changed. Absent: the rule would be added."
    )


class PreviewEnforcement(InDomain):
    """Body of PreviewEnforcement."""

    days: Days = Field(default=DEFAULT_DAYS, description="Number of past days whose logins are decided again.")
    rule: ProposedRule | None = Field(
        default=None, description="A rule that is taken as added or changed, to see its effect before it is stored."
    )


class CheckEnrolments(InDomain):
    """Body of CheckEnrolments."""

    days: Days = Field(default=DEFAULT_DAYS, description="Number of past days whose users are checked.")
    again: Flag = Field(default=False, description="Ask about all users, including those whose enrolment is known.")


class TestLoginRules(InDomain):
    """Body of TestLoginRules. The fact in an absent field is not known to the rules."""

    user: Name = Field(description="User name, with or without a realm of the domain; at most 128 octets.")
    client: AddressOrText = Field(
        default="", description="RADIUS client that sends the login: its name or one of its addresses."
    )
    nas: Annotated[Text, AfterValidator(_address)] = Field(
        default="", description="Address of the NAS (NAS-IP-Address), if it is not the sender's."
    )
    nasIdentifier: Text = Field(default="", description="Name that the NAS sends (NAS-Identifier).")
    station: Text = Field(default="", description="Calling-Station-Id, such as a MAC address.")
    medium: Text = Field(
        default="", description="Medium of the NAS port, such as Wireless. Empty: the medium in the inventory."
    )
    serviceType: Text = Field(default="", description="Service-Type by name or number (RFC 2865 section 5.6).")
    groups: Annotated[Many[Name], Field(max_length=MOST_GROUPS)] = Field(
        default=[], description="Groups of the user in addition to the known ones, as an LDAP server would return them."
    )
    ous: Annotated[Many[Name], Field(max_length=MOST_GROUPS)] = Field(
        default=[], description="Organizational units of the user in addition to the known ones."
    )
    at: Text = Field(default="", description="Time of the login, ISO 8601. Empty: now.")


class ReadRule(Model):
    """A login rule that was read, up to the one that decides."""

    position: int = Field(description="Position in the order in which the domain's rules are read, from 1.")
    ruleId: int = Field(description="Id of the rule.")
    name: str = Field(description="Name of the rule.")
    action: Action = Field(description="Action of the rule.")
    result: Result = Field(
        description="`differs`: a scope does not match. `may match`: a fact is missing; an allow rule is then "
        "skipped. `matches`: the rule matches, but a stricter rule before it may match and decides."
    )
    scope: str = Field(description="The first scope that does not match or cannot be evaluated; empty for none.")
    has: str = Field(description="Value of the login for that scope; `not known` if it is missing.")


class LoginRulesTested(Done):
    """Answer of TestLoginRules."""

    domainName: str = Field(description="Name of the domain.")
    user: str = Field(description="User name without a realm.")
    rules: list[ReadRule] = Field(description="Rules in the order in which they are read, up to the one that decides.")
    ruleId: int | None = Field(description="Id of the rule that decides; null: no rule matches.")
    action: Action = Field(description="Action of that rule; without one, mfa_required.")
    bypass: bool = Field(
        description="Whether the station is admitted by its MAC address, without a password and a user."
    )
    lockedOut: bool = Field(description="Whether the user or the station is locked out now.")
    firstFactor: str = Field(description="First factor of the domain.")
    firstFactorReason: str = Field(
        description="Reason why the first factor would refuse any password; empty if a password may pass."
    )
    secondFactor: str = Field(description="MFA provider of the domain; empty if there is none.")
    secondFactorReason: str = Field(
        description="Result of asking the user for the second factor; empty if the user is not asked."
    )
    enforcementMode: Literal["monitor", "enforce"] = Field(description="Mode of the domain.")
    fallbackAction: Literal["deny", "allow"] = Field(description="Fallback action of the domain.")
    decision: Verdict = Field(description="Decision for a correct password.")
    appliedDecision: Verdict = Field(description="Decision that would be sent; differs in monitor mode.")
    reason: str = Field(description="Reason of the decision, in words; empty for a plain accept.")
    warnings: list[str] = Field(description="Warnings about facts that are missing or inconsistent.")

"""The requests and answers of the operations on password policies."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretBytes, model_validator

from sallyport.agentwire.state import First
from sallyport.areas.passwords.engine import CLASSES
from sallyport.areas.passwords.policy import FIELDS, MAX_PASSWORD, Assignment, means_yes
from sallyport.base.model import Model, SentModel, with_fields
from sallyport.base.validation import unfit
from sallyport.web.bodies import Id, Many, Name, NameOrNone, Octets, Paged, ScopedIfGiven, Text

MAX_SHOWN: Final = 1000
"""Maximum number of instances that are listed for a policy."""
_NUMERAL: Final = re.compile(r"[+-]?[0-9]{1,9}")


def _number(low: int, high: int) -> AfterValidator:
    def checked(value: str) -> str:
        text = value.strip()
        if text and not (_NUMERAL.fullmatch(text) and low <= int(text) <= high):
            raise unfit(f"must be a whole number from {low} to {high}, or empty")
        return str(int(text)) if text else ""

    return AfterValidator(checked)


def _yes_or_no(value: object) -> object:
    """Return a flag. A text is returned as it was sent. A number or boolean becomes `yes` or `no`."""
    text = value.strip() if isinstance(value, str) else value
    if text is None or text == "":
        return text
    flag = means_yes(str(text)) if isinstance(text, str | int) else None
    if flag is None:
        raise unfit("must be yes, no or empty")
    return text if isinstance(text, str) else "yes" if flag else "no"


def _one_or_zero(value: object) -> object:
    """Return a flag as `1` or `0`, as pwquality.conf requires."""
    text = _yes_or_no(value)
    return str(int(means_yes(text) is True)) if isinstance(text, str) and text else text


def _first(value: str) -> str:
    text = value.strip().casefold()
    if text and text not in list(First):
        raise unfit("must be uppercase, lowercase, digit or empty")
    return text


def _lower(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def _password(value: SecretBytes) -> SecretBytes:
    octets = value.get_secret_value()
    if b"\0" in octets:
        raise unfit("must be text without the character NUL")
    if len(octets.decode(errors="surrogateescape")) > MAX_PASSWORD:
        raise unfit(f"must have at most {MAX_PASSWORD} characters")
    return value


Length = Annotated[str, _number(0, MAX_PASSWORD)]
LongestLength = Annotated[str, _number(1, MAX_PASSWORD)]
Credit = Annotated[str, _number(-MAX_PASSWORD, MAX_PASSWORD)]
Classes = Annotated[str, _number(0, CLASSES)]
Allowed = Annotated[str, BeforeValidator(_yes_or_no)]
Check = Annotated[str, BeforeValidator(_one_or_zero)]
FirstCharacter = Annotated[str, AfterValidator(_first)]
PolicyId = Annotated[Id, Field(description="Id of the password policy.")]
_COUNT = f"0 to {MAX_PASSWORD}, or empty"
_CREDIT = f"-{MAX_PASSWORD} to {MAX_PASSWORD}, or empty"


def _credit(kind: str) -> str:
    return (
        f"libpwquality: a value n above 0 makes up to n {kind} count twice towards minlen. A value -n requires n of "
        f"them. The field accepts {_CREDIT}."
    )


_NAME = "Name of the policy, unique within the tenant."


class PolicyFields(SentModel):
    """The fields of a policy in a request. None means that the field is absent. An empty text means that the field has
    no value."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    policyName: NameOrNone | None = Field(default=None, description=_NAME)
    templateName: Text | None = Field(default=None, description="Name of the template from which the policy was made.")
    minLen: Length | None = Field(default=None, description=f"Minimum number of characters, in any script. {_COUNT}.")
    maxLen: LongestLength | None = Field(
        default=None, description=f"Maximum number of characters, in any script. 1 to {MAX_PASSWORD}, or empty."
    )
    firstChar: FirstCharacter | None = Field(
        default=None, description="First character: uppercase, lowercase or digit, or empty."
    )
    allowUpperLower: Allowed | None = Field(
        default=None,
        description="Whether one password may have both uppercase and lowercase letters: yes or no. "
        "An empty value means yes.",
    )
    allowSpecial: Allowed | None = Field(
        default=None, description="Whether special characters are allowed: yes or no. An empty value means yes."
    )
    allowNumeric: Allowed | None = Field(
        default=None, description="Whether digits are allowed: yes or no. An empty value means yes."
    )
    minlen: Length | None = Field(
        default=None, description=f"Minimum length, which credits reduce (libpwquality); {_COUNT}."
    )
    dcredit: Credit | None = Field(default=None, description=_credit("digits"))
    ucredit: Credit | None = Field(default=None, description=_credit("uppercase letters"))
    lcredit: Credit | None = Field(default=None, description=_credit("lowercase letters"))
    ocredit: Credit | None = Field(default=None, description=_credit("other characters"))
    minclass: Classes | None = Field(
        default=None, description=f"libpwquality: minimum number of character classes; 0 to {CLASSES}, or empty."
    )
    maxrepeat: Length | None = Field(
        default=None, description=f"libpwquality: maximum number of equal characters in a row; {_COUNT}."
    )
    maxclassrepeat: Length | None = Field(
        default=None, description=f"libpwquality: maximum number of characters of one class in a row; {_COUNT}."
    )
    maxsequence: Length | None = Field(
        default=None, description=f"libpwquality: maximum length of a sequence such as 1234 or dcba; {_COUNT}."
    )
    usercheck: Check | None = Field(
        default=None,
        description="libpwquality: 1 to refuse passwords that contain the user name, 0 or empty to accept them.",
    )

    def given(self) -> dict[str, str]:
        """Return the fields that the request contains, by name. An empty policyName counts as absent."""
        found = {name: getattr(self, name) for name in FIELDS}
        found["policyName"] = found["policyName"] or None
        return {name: value for name, value in found.items() if value is not None}


class AddPasswordPolicy(ScopedIfGiven, PolicyFields):
    """Request body of the operation `addPasswordPolicy`."""

    policyName: Name = Field(description=_NAME)


class PolicyDone(Model):
    """Response body of the operation `assignPolicyToMachine`, and part of the answer of `addPasswordPolicy`."""

    code: int = Field(default=200, description="HTTP status of the answer.")
    message: str = Field(description="Result in words.")


class PolicyAdded(PolicyDone):
    """Response body of the operation `addPasswordPolicy`."""

    policyId: int = Field(description="Id of the new policy.")
    warnings: list[str] = Field(description="A warning if the policy has no rule; otherwise empty.")


class UpdatePasswordPolicy(ScopedIfGiven, PolicyFields):
    """A policy to change, in the body of `updatePasswordPolicy`. An absent field keeps its value. An empty text clears
    the value, but an empty policyName keeps the name."""

    policyId: PolicyId


class DeletePasswordPolicy(ScopedIfGiven):
    """A policy to delete, in the body of `deletePasswordPolicy`."""

    policyId: PolicyId


class AssignPolicy(ScopedIfGiven):
    """An assignment to add or remove, in the body of `assignPolicyToMachine`."""

    policyId: PolicyId
    instanceId: Id = Field(description="Id of the instance.")
    action: Annotated[Literal["add", "remove"], BeforeValidator(_lower)] = Field(
        default="add", description="`add` assigns the policy to the instance. `remove` removes the assignment."
    )

    @property
    def assignment(self) -> Assignment:
        """Return the assignment in the form that the service needs."""
        return Assignment(self.policyId, self.instanceId, self.action == "add")


class ListPasswordPolicy(ScopedIfGiven, Paged):
    """Request body of the operation `listAllPasswordPolicy`."""

    machineIds: Many[Id] | None = Field(
        default=None,
        description="Ids of instances, to list only the policies assigned to them. If it is absent, all policies are "
        "listed.",
    )


@with_fields(
    {
        name: (str, Field(default="", description=field.description))
        for name, field in PolicyFields.model_fields.items()
        if name != "policyName"
    }
)
class PasswordPolicy(Model):
    """A policy in an answer. An empty text means that the field has no value."""

    policyName: str = Field(description=_NAME)


class PolicyEntry(PasswordPolicy):
    """A policy in the answer of `listAllPasswordPolicy`."""

    policyId: int = Field(description="Id of the policy.")
    instanceIds: list[int] = Field(
        description=f"Ids of the first {MAX_SHOWN} instances to which the policy is assigned."
    )


class PolicyList(Model):
    """Response body of the operation `listAllPasswordPolicy`."""

    totalPolicies: int = Field(description="Number of policies on all pages.")
    totalPages: int = Field(description="Number of pages.")
    passwordPolicies: list[PolicyEntry] = Field(description="Policies on this page, ordered by id.")


class ValidatePolicy(ScopedIfGiven):
    """Request body of the operation `validatePolicy`."""

    machineId: Id = Field(
        description="Id of the instance whose policies the password must meet; 0 or absent if policyId is given."
    )
    policyId: Id | None = Field(default=None, description="Id of a policy that the password must meet.")
    password: Annotated[Octets, AfterValidator(_password)] = Field(
        description=f"Password to check: at most {MAX_PASSWORD} characters without NUL."
    )
    userName: Text = Field(
        default="",
        description="Login name of the user, for the rule usercheck (the password must not contain the name).",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_policy(cls, value: object) -> object:
        """If the request contains a policy and no machine, set machineId to 0. No instance has the id 0."""
        if isinstance(value, dict) and value.get("policyId") is not None:
            return {"machineId": 0, **value}
        return value

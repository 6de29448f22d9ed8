"""What a password policy is, in the store and in the interface.

All its fields are strings, as the interface has them, and an empty one is no value. They are checked when they come in
and kept as they are written in `PasswordPolicy`; `PasswordPolicy.rules` makes of them what the engine takes.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.passwords.engine import CLASSES, First, Quality, Rules
from sallyport.web.paging import Paged
from sallyport.web.scope import Flag, Id, Many, Name, NameOrNone, ScopedIfGiven, Text

MAX_PASSWORD: Final = 1024
"""Characters of a password that is looked at, and the highest number that a field about them takes."""
_NUMERAL: Final = re.compile(r"[+-]?[0-9]{1,9}")
_FLAG: Final[TypeAdapter[bool]] = TypeAdapter(Flag)


def _number(low: int, high: int) -> AfterValidator:
    def checked(value: str) -> str:
        text = value.strip()
        if text and not (_NUMERAL.fullmatch(text) and low <= int(text) <= high):
            raise unfit(f"a whole number from {low} to {high}, or empty")
        return str(int(text)) if text else ""

    return AfterValidator(checked)


def _means_yes(value: object) -> bool:
    try:
        return _FLAG.validate_python(value)
    except ValidationError:
        raise unfit("yes or no, or empty") from None


def _yes_or_no(value: object) -> object:
    """What stands for true or false, as it was sent."""
    text = value.strip() if isinstance(value, str) else value
    if text is None or text == "":
        return text
    meant = "yes" if _means_yes(text) else "no"
    return text if isinstance(text, str) else meant


def _one_or_zero(value: object) -> object:
    """What stands for true or false, as pwquality.conf has it."""
    text = _yes_or_no(value)
    return str(int(_means_yes(text))) if text else text


def _first(value: str) -> str:
    text = value.strip().casefold()
    if text and text not in list(First):
        raise unfit("uppercase, lowercase or digit, or empty")
    return text


def _lower(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def _password(value: str) -> str:
    if "\0" in value:
        raise unfit("text without NUL")
    return value


Length = Annotated[str, _number(0, MAX_PASSWORD)]
LongestLength = Annotated[str, _number(1, MAX_PASSWORD)]
Credit = Annotated[str, _number(-MAX_PASSWORD, MAX_PASSWORD)]
Classes = Annotated[str, _number(0, CLASSES)]
Allowed = Annotated[str, BeforeValidator(_yes_or_no)]
Check = Annotated[str, BeforeValidator(_one_or_zero)]
FirstCharacter = Annotated[str, AfterValidator(_first)]
Password = Annotated[str, Field(max_length=MAX_PASSWORD), AfterValidator(_password)]


class PasswordPolicy(Model):
    """A policy as it is kept; the fields from minlen on are libpwquality's."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    policyName: str
    templateName: str = ""
    minLen: str = ""
    maxLen: str = ""
    firstChar: str = ""
    allowUpperLower: str = ""
    allowSpecial: str = ""
    allowNumeric: str = ""
    minlen: str = ""
    dcredit: str = ""
    ucredit: str = ""
    lcredit: str = ""
    ocredit: str = ""
    minclass: str = ""
    maxrepeat: str = ""
    maxclassrepeat: str = ""
    maxsequence: str = ""
    usercheck: str = ""

    def values(self) -> dict[str, str]:
        """The fields that have a value."""
        return {name: value for name, value in self if value}

    def rules(self) -> Rules:
        """What the engine takes."""
        return Rules(
            min_length=_or_none(self.minLen),
            max_length=_or_none(self.maxLen),
            first=First(self.firstChar) if self.firstChar else None,
            both_cases=_allowed(self.allowUpperLower),
            special=_allowed(self.allowSpecial),
            digits=_allowed(self.allowNumeric),
            quality=self._quality(),
        )

    def _quality(self) -> Quality | None:
        """None where no parameter of libpwquality has a value."""
        if not any(getattr(self, name) for name in PARAMETERS):
            return None
        return Quality(
            minlen=_or_none(self.minlen),
            credits=(_or_0(self.dcredit), _or_0(self.ucredit), _or_0(self.lcredit), _or_0(self.ocredit)),
            minclass=_or_0(self.minclass),
            maxrepeat=_or_0(self.maxrepeat),
            maxclassrepeat=_or_0(self.maxclassrepeat),
            maxsequence=_or_0(self.maxsequence),
            usercheck=self.usercheck == "1",
        )


FIELDS: Final = tuple(PasswordPolicy.model_fields)
PARAMETERS: Final = FIELDS[FIELDS.index("minlen") :]
"""Those of libpwquality."""


def _allowed(value: str) -> bool:
    return not value or _means_yes(value)


def _or_none(value: str) -> int | None:
    return int(value) if value else None


def _or_0(value: str) -> int:
    return int(value or 0)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of a tenant."""

    id: int
    fields: PasswordPolicy


class PolicyFields(Model):
    """What a policy can be made of: None is not given, an empty text is no value."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    policyName: NameOrNone | None = None
    templateName: Text | None = None
    minLen: Length | None = None
    maxLen: LongestLength | None = None
    firstChar: FirstCharacter | None = None
    allowUpperLower: Allowed | None = None
    allowSpecial: Allowed | None = None
    allowNumeric: Allowed | None = None
    minlen: Length | None = None
    dcredit: Credit | None = None
    ucredit: Credit | None = None
    lcredit: Credit | None = None
    ocredit: Credit | None = None
    minclass: Classes | None = None
    maxrepeat: Length | None = None
    maxclassrepeat: Length | None = None
    maxsequence: Length | None = None
    usercheck: Check | None = None

    def given(self) -> dict[str, str]:
        """Return the given fields by name; an empty policy name is not given."""
        found = {name: getattr(self, name) for name in FIELDS}
        found["policyName"] = found["policyName"] or None
        return {name: value for name, value in found.items() if value is not None}


class AddPasswordPolicy(ScopedIfGiven, PolicyFields):
    """Body of addPasswordPolicy."""

    policyName: Name


class PolicyDone(Model):
    """The answer of adding and assigning."""

    code: int = 200
    message: str


class UpdatePasswordPolicy(ScopedIfGiven, PolicyFields):
    """An entry of updatePasswordPolicy. An absent field keeps its value, an empty text clears it; an empty policyName
    keeps the name."""

    policyId: Id


class DeletePasswordPolicy(ScopedIfGiven):
    """An entry of deletePasswordPolicy."""

    policyId: Id


class AssignPolicy(ScopedIfGiven):
    """An entry of assignPolicyToMachine; `action` is an addition to the interface."""

    policyId: Id
    instanceId: Id
    action: Annotated[Literal["add", "remove"], BeforeValidator(_lower)] = "add"


class ListPasswordPolicy(ScopedIfGiven, Paged):
    """Body of listAllPasswordPolicy. machineIds: those that apply to any of these machines; none means all."""

    machineIds: Many[Id] | None = None


class PolicyEntry(PasswordPolicy):
    """A policy in a list."""

    policyId: int


class PolicyList(Model):
    """Answer of listAllPasswordPolicy."""

    totalPolicies: int
    totalPages: int
    passwordPolicies: list[PolicyEntry]


class ValidatePolicy(ScopedIfGiven):
    """Body of validatePolicy; `userName`, whose password it is to be, is an addition to the interface."""

    machineId: Id
    password: Password
    userName: Text = ""

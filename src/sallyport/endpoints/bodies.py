"""What the bodies of instances, groups and users share."""

from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.web.scope import OfDomain, Text

MAX_ENTRIES = 200
"""Users, groups or credentials that one request changes: logins wait for its transaction, up to 0.6 ms for each."""
METHODS = {"ssh": "SSH", "did": "DID", "password": "Password"}
"""How one may authenticate at an endpoint, by the name without case."""
_FLAGS = {"true", "yes", "1", "false", "no", "0"}


class Action(StrEnum):
    """What is done with an assignment."""

    ADD = "add"
    REMOVE = "remove"


def _action(value: object) -> object:
    try:
        return Action(str(value).strip().lower())
    except ValueError:
        raise unfit("add or remove") from None


def _methods(value: object) -> object:
    if not isinstance(value, str):
        raise unfit("text")
    if not value.strip():
        return ""
    found = [METHODS.get(each.strip().lower()) for each in value.split(",")]
    if None in found:
        raise unfit("SSH, DID and Password, separated by commas")
    return ",".join(dict.fromkeys(str(each) for each in found))


def _flag_text(value: object) -> object:
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if not isinstance(value, str | int) or (text and text.lower() not in _FLAGS):
        raise unfit("true, yes, 1 or false, no, 0")
    return text


AnyAction = Annotated[Action, BeforeValidator(_action)]
Methods = Annotated[Text, BeforeValidator(_methods)]
"""Methods of authentication, separated by commas, each once and as people write it; empty for none."""
FlagText = Annotated[Text, BeforeValidator(_flag_text)]
"""A flag that the interface has as a string: kept as it was sent; empty for none."""


class Assignment(OfDomain):
    """A body that assigns, or takes an assignment away; `actions` is another spelling."""

    action: AnyAction = Field(validation_alias=AliasChoices("action", "actions"))


class StatusAnswer(Model):
    """An answer of status and message."""

    status: str = "Success"
    message: str


class CodeAnswer(Model):
    """An answer of code and message."""

    code: int = 200
    message: str

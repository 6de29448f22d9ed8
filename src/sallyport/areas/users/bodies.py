"""Fields and answers that instances, groups and users have in common."""

from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from sallyport.areas.users.membership import Action
from sallyport.areas.users.user import METHODS_TEXT
from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.web.bodies import OfDomain, Text

MAX_ENTRIES = 200
"""Maximum number of users, groups or credentials that one request changes. Logins wait for the transaction of the
request, and each entry takes up to 0.6 ms."""
METHODS = {"ssh": "SSH", "did": "DID", "password": "Password"}
"""Authentication methods of an endpoint by their lower-case names."""
_FLAGS = {"true", "yes", "1", "false", "no", "0"}


def _action(value: object) -> object:
    try:
        return Action(str(value).strip().lower())
    except ValueError:
        raise unfit("must be add or remove") from None


def _methods(value: object) -> object:
    if not isinstance(value, str):
        raise unfit("must be text")
    if not value.strip():
        return ""
    found = [METHODS.get(each.strip().lower()) for each in value.split(",")]
    if None in found:
        raise unfit("must be one or more of SSH, DID and Password, separated by commas")
    return ",".join(dict.fromkeys(str(each) for each in found))


def _flag_text(value: object) -> object:
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if not isinstance(value, str | int) or (text and text.lower() not in _FLAGS):
        raise unfit("must be true, yes, 1, false, no or 0")
    return text


AnyAction = Annotated[
    Action, BeforeValidator(_action), Field(description="add: assign; remove: remove the assignment.")
]
Methods = Annotated[Text, BeforeValidator(_methods), Field(description=METHODS_TEXT)]
"""Authentication methods, separated by commas, without duplicates and in the spelling of METHODS. An empty text stands
for all methods."""
FlagText = Annotated[Text, BeforeValidator(_flag_text)]
"""A flag that is sent and stored as text. An empty text means that the flag is not given."""
Privileged = Annotated[
    FlagText,
    Field(description="true, yes or 1 gives root privileges on instances; false, no, 0 or an empty text gives none."),
]


class Assignment(OfDomain):
    """A body that adds or removes assignments. The field `action` is also accepted under the name `actions`."""

    action: AnyAction = Field(validation_alias=AliasChoices("action", "actions"))


class StatusAnswer(Model):
    """An answer with the fields status and message."""

    status: str = Field(default="Success", description="Success, or Failure if the operation failed.")
    message: str = Field(description="Result in words.")


class CodeAnswer(Model):
    """An answer with the fields code and message."""

    code: int = Field(default=200, description="HTTP status of the answer.")
    message: str = Field(description="Result in words.")

"""Bodies of the operation ImportConfiguration."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from sallyport.base.model import Done, Model
from sallyport.web.bodies import Flag, OfDomain, Text, plain

LISTED: Final = 1000
"""Maximum number of objects, and of findings, that an answer lists."""


def _lines(text: str) -> str:
    for line in text.splitlines():
        plain(line)
    return text


Lines = Annotated[str, Field(max_length=1 << 16), AfterValidator(_lines)]
"""A text with several lines."""


class ImportConfiguration(OfDomain):
    """The form fields of ImportConfiguration, in addition to `file`."""

    format: Literal["nps", "ise", "clearpass", "csv", "freeradius"] = Field(
        description="Format of the file. For `freeradius`: a tar, tar.gz or zip of its folder."
    )
    fileName: Text = Field(
        default="", description="File name for messages. If it is empty, the name of the uploaded file is used."
    )
    timezone: Text = Field(default="", description="Time zone of the old server, such as `Europe/Berlin`.")
    groups: Lines = Field(
        default="",
        description="Names of groups that no directory knows, as lines `SID=NAME`. Lines without NAME are ignored.",
    )
    decisions: Lines = Field(
        default="",
        description="What to do with policies that deny and cannot be expressed, as lines `NAME=block` or `NAME=skip`. "
        "Lines without a decision are ignored.",
    )
    noDialInPermissions: Flag = Field(
        default=False, description="No account of the directory has a dial-in permission of its own."
    )
    columns: Lines = Field(
        default="",
        description="For `csv`: the columns, as lines `FIELD=COLUMN` with name, address, secret, product, "
        "note and tag.KEY.",
    )
    plan: Text = Field(
        default="", description="The plan to write, as an answer has named it. Empty: only return the plan."
    )


class ImportStep(Model):
    """An object of the file that is new, or that changes."""

    sign: Literal["+", "~"] = Field(description="`+` for a new object, `~` for one that changes.")
    kind: str = Field(description="Kind of object, such as `client`.")
    name: str = Field(description="Name of the object.")
    source: str = Field(description="File and line.")
    fields: dict[str, object] = Field(
        description="The values before and after, by field, without secrets; of a new object, those that are not the "
        "default."
    )


class ImportFinding(Model):
    """An element of the file that an admin must know."""

    weight: str = Field(description="`undecided`, `left out`, `disabled` or `note`.")
    name: str = Field(description="Name of the element.")
    source: str = Field(description="File and line.")
    text: str = Field(description="What cannot be expressed, and why.")


class ImportPlanned(Done):
    """Response body of the operation ImportConfiguration."""

    applied: bool = Field(description="Whether the plan was written.")
    plan: str = Field(description="Name of the plan. With it, the same file can be written.")
    added: int = Field(description="Number of new objects.")
    changed: int = Field(description="Number of objects that change.")
    unchanged: int = Field(description="Number of objects that are present already.")
    admitting: int = Field(description="Number of rules that admit logins without a second factor.")
    steps: list[ImportStep] = Field(description="The first 1,000 objects that are new or change.")
    findings: list[ImportFinding] = Field(description="The first 1,000 findings, those that need a decision first.")
    findingCount: int = Field(description="Number of all findings.")
    undecided: list[str] = Field(description="Policies that need a decision before the plan can be written.")
    unknownGroups: list[str] = Field(description="SIDs of groups that no directory knows.")
    managed: list[str] = Field(
        description="The first 1,000 objects that files manage and that the plan changes. With some, the plan is "
        "written only with `override`."
    )

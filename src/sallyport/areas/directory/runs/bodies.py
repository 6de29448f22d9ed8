"""Bodies of the requests and answers of directory agents. An agent sends the entries of a directory in a run, which
consists of batches.

An entry has the fields of `wire`, so that a validated entry is stored unchanged.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, FailFast, Field

from sallyport.areas.directory.bodies import DirectoryName
from sallyport.areas.directory.entry.descriptions import attribute_key
from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import MAX_ATTRIBUTES, MAX_NAME_LENGTH, MAX_VALUE_LENGTH, MAX_VALUES, is_name
from sallyport.areas.directory.entry.secret_attributes import holds_secret
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.entry.wire import MAX_ENTRIES
from sallyport.base.errors import Invalid
from sallyport.base.model import Done
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import Body, Flag, Id, LongText, OfDomain, PlainText, Whole

MAX_DN_LENGTH: Final = 8192
MAX_MEMBERS: Final = 10_000


def _dn(value: str) -> str:
    try:
        if not normalized(value):
            raise unfit("must be a distinguished name such as cn=ann,dc=example,dc=com")
    except Invalid:
        raise unfit("must be a distinguished name such as cn=ann,dc=example,dc=com") from None
    return value


def _login(value: str) -> str:
    if not is_name(value):
        raise unfit("must be printable text without blanks at the ends")
    return value


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise unfit("must be text without the character NUL")
    return value


def _dn_or_none(value: str) -> str:
    return _dn(value) if value else ""


def _attributes(values: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return attributes with names in the form of `attribute_key`. Attributes that hold secrets are left out."""
    named = ((attribute_key(name), texts) for name, texts in values.items())
    return {name: texts for name, texts in named if not holds_secret(name)}


Dn = Annotated[
    str, Field(max_length=MAX_DN_LENGTH, description="Distinguished name of the entry."), AfterValidator(_dn)
]
AnyDn = Annotated[
    str,
    Field(max_length=MAX_DN_LENGTH, description="Distinguished name. It is empty if the name is not known."),
    AfterValidator(_dn_or_none),
]
Reference = Annotated[str, Field(max_length=MAX_DN_LENGTH)]
"""The name of a member or a group in the directory. Text that is not a name is ignored."""
ExternalId = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=MAX_DN_LENGTH + 3,
        description="Identifier that does not change when the entry is renamed.",
    ),
]
AnyExternalId = Annotated[
    PlainText,
    Field(
        max_length=MAX_DN_LENGTH + 3, description="Identifier of the entry. It is empty if the identifier is not known."
    ),
]
Login = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(_login)]
Value = Annotated[str, Field(max_length=MAX_VALUE_LENGTH), AfterValidator(_without_nul)]
AttributeName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
GroupKey = Annotated[PlainText, Field(max_length=MAX_NAME_LENGTH)]
RunId = Annotated[Id, Field(description="Id of the run, as agent/directory/begin returns it.")]
_KIND: Final = "Kind of entry."


class PersonEntry(Body):
    """An account. Attributes that hold secrets are dropped."""

    kind: Literal["person"] = Field(description=_KIND)
    externalId: ExternalId
    dn: Dn
    name: Login = Field(description="Login name.")
    aliases: Annotated[list[Login], FailFast(), Field(max_length=64)] = Field(
        default_factory=list, description="Other login names."
    )
    status: Status = Field(default=Status.ACTIVE, description="State of the account in its directory.")
    memberOf: Annotated[list[Reference], FailFast(), Field(max_length=MAX_MEMBERS)] = Field(
        default_factory=list,
        description="Distinguished names of groups. Leave out groups that list this account in `members`.",
    )
    attributes: Annotated[
        dict[AttributeName, Annotated[list[Value], FailFast(), Field(max_length=MAX_VALUES)]],
        Field(max_length=MAX_ATTRIBUTES),
        AfterValidator(_attributes),
    ] = Field(default_factory=dict, description="Values of each attribute, for the field mappings.")
    primaryGroup: GroupKey = Field(default="", description="The `key` of the primary group.")


class GroupEntry(Body):
    """A group. If `continued` is true, the entry has further members of the group in the entry before it."""

    kind: Literal["group"] = Field(description=_KIND)
    externalId: ExternalId
    dn: Dn
    name: Login = Field(description="Name of the group.")
    members: Annotated[list[Reference], FailFast(), Field(max_length=MAX_MEMBERS)] = Field(
        default_factory=list, description="Members: distinguished names, or `uid:` followed by a login name."
    )
    key: GroupKey = Field(
        default="", description="Text by which accounts refer to the group in `primaryGroup`. It may be empty."
    )
    continued: Flag = Field(
        default=False, description="true: these are further members of the group in the preceding entry."
    )


class UnitEntry(Body):
    """An organizational unit."""

    kind: Literal["unit"] = Field(description=_KIND)
    externalId: ExternalId
    dn: Dn
    name: Login = Field(description="Name of the unit.")


class UnchangedEntry(Body):
    """An entry that exists and has not changed since the agent last read the directory."""

    kind: Literal["unchanged"] = Field(description=_KIND)
    externalId: ExternalId
    dn: AnyDn = ""
    status: Status | None = Field(
        default=None, description="State of the account. The state may change although the entry has not changed."
    )


class GoneEntry(Body):
    """An entry that no longer exists."""

    kind: Literal["gone"] = Field(description=_KIND)
    externalId: AnyExternalId = ""
    dn: AnyDn = ""


class ProblemEntry(Body):
    """An entry that exists and cannot be used."""

    kind: Literal["problem"] = Field(description=_KIND)
    externalId: AnyExternalId = ""
    dn: Reference = Field(default="", description="Distinguished name of the entry, or any text that identifies it.")
    message: Annotated[PlainText, Field(max_length=500)] = Field(description="Reason, without values of the entry.")
    status: Status | None = Field(default=None, description="State of the account if the directory has blocked it.")


AnyEntry = Annotated[
    PersonEntry | GroupEntry | UnitEntry | UnchangedEntry | GoneEntry | ProblemEntry, Field(discriminator="kind")
]


class BeginRun(OfDomain):
    """Request body of the operation `agent/directory/begin`."""

    directoryName: DirectoryName
    runId: Id | None = Field(
        default=None, description="Id of an open run to continue. If it is absent, a new run begins."
    )


class BatchTaken(Done):
    """Response body of the operation `agent/directory/batch`."""

    runId: int = Field(description="Id of the run.")
    sequence: int = Field(description="Number of the next batch.")


class RunBegun(BatchTaken):
    """Response body of the operation `agent/directory/begin`."""

    cursor: str = Field(description="Cursor of the last run that was imported. It is empty if no run was imported.")


class SendBatch(OfDomain):
    """Request body of the operation `agent/directory/batch`."""

    runId: RunId
    sequence: Annotated[Whole, Between(1, 10**9)] = Field(
        description="Number of the batch. The first batch has the number 1."
    )
    entries: Annotated[list[AnyEntry], Field(min_length=1, max_length=MAX_ENTRIES)] = Field(
        description="Entries of the batch."
    )


class FinishRun(OfDomain):
    """Request body of the operation `agent/directory/finish`."""

    runId: RunId
    sequence: Annotated[Whole, Between(1, 10**9)] = Field(description="Number of the last batch, plus 1.")
    complete: Flag = Field(
        default=False, description="true: the import removes the stored entries that were not sent in this run."
    )
    cursor: LongText = Field(
        default="",
        description=(
            "Position in the changes of the directory. The service returns it as the cursor when the next run begins."
        ),
    )


class RunFinished(Done):
    """Response body of the operation `agent/directory/finish`."""

    jobId: int = Field(description="Id of the import job for the entries of the run.")

"""Request and answer bodies of directory agents: runs, and the entries of their batches (`directory.wire`)."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, FailFast, Field

from sallyport.base.errors import Invalid
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.directory.dn import normalized
from sallyport.directory.entry import (
    LONGEST_NAME,
    LONGEST_VALUE,
    MOST_ATTRIBUTES,
    MOST_VALUES,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    Status,
    Unchanged,
    Unit,
    attribute_key,
    is_name,
)
from sallyport.directory.secret_attributes import holds_secret
from sallyport.directory.wire import MOST_ENTRIES
from sallyport.web.scope import Body, Flag, Id, LongText, Name, OfDomain, PlainText, Whole

LONGEST_DN: Final = 8192
MOST_MEMBERS: Final = 10_000


def _dn(value: str) -> str:
    try:
        if not normalized(value):
            raise unfit("a distinguished name")
    except Invalid:
        raise unfit("a distinguished name") from None
    return value


def _login(value: str) -> str:
    if not is_name(value):
        raise unfit("printable characters, without blanks at the ends")
    return value


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise unfit("text without NUL")
    return value


def _dn_or_none(value: str) -> str:
    return _dn(value) if value else ""


Dn = Annotated[str, Field(max_length=LONGEST_DN), AfterValidator(_dn)]
AnyDn = Annotated[str, Field(max_length=LONGEST_DN), AfterValidator(_dn_or_none)]
Reference = Annotated[str, Field(max_length=LONGEST_DN)]
"""A member or a group as the directory names it; what is no name is left out."""
ExternalId = Annotated[PlainText, Field(min_length=1, max_length=LONGEST_DN + 3)]
Login = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_login)]
Value = Annotated[str, Field(max_length=LONGEST_VALUE), AfterValidator(_without_nul)]
AttributeName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class PersonEntry(Body):
    """An account. Attributes that are passwords, keys or codes are left out."""

    kind: Literal["person"]
    externalId: ExternalId
    dn: Dn
    name: Login
    aliases: Annotated[list[Login], FailFast(), Field(max_length=64)] = Field(default_factory=list)
    status: Status = Status.ACTIVE
    memberOf: Annotated[list[Reference], FailFast(), Field(max_length=MOST_MEMBERS)] = Field(default_factory=list)
    attributes: Annotated[
        dict[AttributeName, Annotated[list[Value], FailFast(), Field(max_length=MOST_VALUES)]],
        Field(max_length=MOST_ATTRIBUTES),
    ] = Field(default_factory=dict)
    primaryGroup: Annotated[PlainText, Field(max_length=LONGEST_NAME)] = ""

    def entry(self) -> Entry:
        """As a reading has it."""
        named = ((attribute_key(name), values) for name, values in self.attributes.items())
        attributes = {name: tuple(values) for name, values in named if not holds_secret(name)}
        return Person(
            self.externalId,
            self.dn,
            self.name,
            tuple(self.aliases),
            self.status,
            tuple(self.memberOf),
            attributes,
            self.primaryGroup,
        )


class GroupEntry(Body):
    """A group, or with `continued` more members of the group right before it."""

    kind: Literal["group"]
    externalId: ExternalId
    dn: Dn
    name: Login
    members: Annotated[list[Reference], FailFast(), Field(max_length=MOST_MEMBERS)] = Field(default_factory=list)
    key: Annotated[PlainText, Field(max_length=LONGEST_NAME)] = ""
    continued: Flag = False

    def entry(self) -> Entry:
        """As a reading has it."""
        return Group(self.externalId, self.dn, self.name, tuple(self.members), self.key)


class UnitEntry(Body):
    """An organizational unit."""

    kind: Literal["unit"]
    externalId: ExternalId
    dn: Dn
    name: Login

    def entry(self) -> Entry:
        """As a reading has it."""
        return Unit(self.externalId, self.dn, self.name)


class UnchangedEntry(Body):
    """An entry that is there, and has not been changed."""

    kind: Literal["unchanged"]
    externalId: ExternalId
    dn: AnyDn = ""
    status: Status | None = None

    def entry(self) -> Entry:
        """As a reading has it."""
        return Unchanged(self.externalId, self.dn, self.status)


class GoneEntry(Body):
    """An entry that is not there any more."""

    kind: Literal["gone"]
    externalId: Annotated[PlainText, Field(max_length=LONGEST_DN + 3)] = ""
    dn: AnyDn = ""

    def entry(self) -> Entry:
        """As a reading has it."""
        return Gone(self.externalId, self.dn)


class ProblemEntry(Body):
    """An entry that cannot be used."""

    kind: Literal["problem"]
    externalId: Annotated[PlainText, Field(max_length=LONGEST_DN + 3)] = ""
    dn: Reference = ""
    message: Annotated[PlainText, Field(max_length=500)]

    def entry(self) -> Entry:
        """As a reading has it."""
        return Problem(self.dn, self.message, self.externalId)


AnyEntry = Annotated[
    PersonEntry | GroupEntry | UnitEntry | UnchangedEntry | GoneEntry | ProblemEntry, Field(discriminator="kind")
]


class BeginRun(OfDomain):
    """Body of begin. runId: of a run that the agent wants to go on with."""

    directoryName: Name
    runId: Id | None = None


class RunBegun(Model):
    """Answer of begin. sequence: of the batch that is expected next; cursor: of the last run that was applied."""

    code: int = 200
    status: str = "Success"
    message: str
    runId: int
    sequence: int
    cursor: str


class SendBatch(OfDomain):
    """Body of batch. sequence: from 1, one more with each."""

    runId: Id
    sequence: Annotated[Whole, Between(1, 10**9)]
    entries: Annotated[list[AnyEntry], Field(min_length=1, max_length=MOST_ENTRIES)]


class BatchTaken(Model):
    """Answer of batch. sequence: of the batch that is expected next."""

    code: int = 200
    status: str = "Success"
    message: str
    runId: int
    sequence: int


class FinishRun(OfDomain):
    """Body of finish. sequence: one more than that of the last batch. complete: the run has told of every entry, so
    that what it has not told of is gone. cursor: where the agent's next run of changes goes on."""

    runId: Id
    sequence: Annotated[Whole, Between(1, 10**9)]
    complete: Flag = False
    cursor: LongText = ""


class RunFinished(Model):
    """Answer of finish. jobId: of the import that applies the run."""

    code: int = 200
    status: str = "Success"
    message: str
    jobId: int

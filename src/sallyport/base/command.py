"""The command line of an area: click commands in `cli.py`, whose context object is a `CommandLine`.

A command runs an operation of the API, over the control socket of the running service. If a domain is given, the body
needs no orgId, tenantId and domainId:

    @domain.command()
    @click.argument("name")
    @click.pass_obj
    def confirm(line: CommandLine, name: str) -> None:
        line.run("/ad/updateDomainEnforcement", {"confirm": True}, domain=name)

If the API has no operation for a task, the area defines a command with named arguments:

    def commands(service: Tenancy) -> dict[str, Command]:
        async def revoke(arguments: RevokeToken) -> JSON:
            ...
        return {"token.revoke": command(RevokeToken, revoke)}

    line.call("token.revoke", token="ci")
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TextIO, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sallyport.base.config import Settings
from sallyport.base.errors import NotFound
from sallyport.base.model import Model
from sallyport.base.options import list_command
from sallyport.base.text import existing, fold
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON, Row

Form = Literal["table", "json", "csv", "jsonl"]
"""Output format of rows."""

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


Ready: TypeAlias = Callable[[], Awaitable[JSON]]
"""A function that runs a command with validated arguments."""
Command: TypeAlias = Callable[[Mapping[str, object]], Ready]
"""A function that validates the arguments of a command; it may run in any thread. It raises Invalid, which lists the
wrong fields without their values."""


def command(arguments: type[ArgumentsT], run: Callable[[ArgumentsT], Awaitable[JSON]]) -> Command:
    """Return a command that validates its arguments with a model and passes them to `run`."""

    def ready(values: Mapping[str, object]) -> Ready:
        try:
            return partial(run, arguments.model_validate(dict(values)))
        except ValidationError as error:
            raise refusal(error) from None

    return ready


class Commands:
    """All commands of the service. ValueError: two areas define a command with the same name."""

    def __init__(self, areas: Iterable[Mapping[str, Command]]) -> None:
        self._commands: dict[str, Command] = {}
        for commands in areas:
            for name, each in commands.items():
                if name in self._commands:
                    raise ValueError(f"two commands are called {name}")
                self._commands[name] = each

    def ready(self, name: str, arguments: Mapping[str, object]) -> Ready:
        """Validate the arguments of a command. It may run in any thread. NotFound: there is no such command. Raises
        Invalid."""
        found = self._commands.get(name)
        if found is None:
            raise NotFound("no such command; the running service may be of another version")
        return found(arguments)


class Tenants(Protocol):
    """The tenants of the installation."""

    async def tenant_id(self, organization: int, number: int) -> int:
        """Return a tenant's internal id. organization, number: the orgId and tenantId of a body. Raises NotFound."""

    async def numbers(self) -> Mapping[int, tuple[int, int]]:
        """Return (orgId, tenantId) of all tenants by internal id."""


class Arguments(Model):
    """The base class for the arguments of commands. Commands without arguments use this class itself. An unknown
    argument is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def entries(value: JSON) -> list[Row]:
    """Return the objects in a list. If the value is not a list, return an empty list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class CommandLine(Protocol):
    """The connection to the service, and the outputs, for the commands of an area.

    Only results go to standard output; notes go to standard error. Control sequences are replaced in both.
    """

    def settings(self) -> Settings:
        """Return the settings of the service. Raises ConfigError."""

    def run(
        self,
        path: str,
        body: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] = MappingProxyType({}),
        /,
        *,
        domain: str | None = None,
        domains: Sequence[str] | None = None,
    ) -> Row:
        """Run an operation of the API, in the running service or on the store if no service runs. Return its answer.

        An answer that is not a JSON object is returned in the field `message`. domain, domains: names or ids of
        domains, which are sent as domainId and domainIds in the body. orgId and tenantId are then sent too; without a
        domain, the body must contain them. SallyportError: the operation failed.
        """

    def listed(
        self,
        path: str,
        field: str | None,
        body: Mapping[str, JSON] = MappingProxyType({}),
        /,
        *,
        domain: str | None = None,
        size: int = 1000,
    ) -> Iterator[Row]:
        """Yield the entries of a list operation, page by page.

        field: name of the list in the answer; None if the answer is an array. size: entries of a page, at most the
        limit of the operation.
        """

    def listed_everywhere(
        self, path: str, field: str | None, body: Mapping[str, JSON] = MappingProxyType({}), /, *, size: int = 1000
    ) -> Iterator[Row]:
        """Yield the entries of `listed` for each tenant of the installation, with the fields `org` and `tenant`
        added."""

    def call(self, command: str, /, **arguments: JSON) -> JSON:
        """Run a command in the running service, or on the store if no service runs. SallyportError: it failed."""

    def row(self, command: str, /, **arguments: JSON) -> Row:
        """Run a command that returns an object; see `call`."""

    def rows(self, command: str, /, **arguments: JSON) -> list[Row]:
        """Run a command that returns a list of objects; see `call`."""

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        """Read a secret: at a terminal with a prompt and without echo, otherwise the next line of standard input.

        confirm: ask twice at a terminal.
        """

    def print(self, text: str) -> None:
        """Print a line on standard output."""

    def print_rows(
        self, rows: Iterable[Row], columns: Sequence[str], form: Form | None = None, *, to: TextIO | None = None
    ) -> None:
        """Print rows to standard output, or to the file `to`.

        A table (the default) and CSV have these columns. JSON has whole rows: json as one array, jsonl as a line for
        each row.
        """

    def print_json(self, value: JSON) -> None:
        """Print indented JSON."""

    def note(self, text: str) -> None:
        """Print a line on standard error."""


def domains(line: CommandLine, name: str | None) -> Iterator[Row]:
    """Yield the domain with a name or id; if the name is None, yield every domain. A domain has the form of
    GetAllDomains."""
    path, field, size = "/ad/GetAllDomains", "domains", 100
    if name is None:
        yield from line.listed_everywhere(path, field, size=size)
        return
    own = list(line.listed(path, field, domain=name, size=size))  # all domains of its tenant
    by_id = [each for each in own if str(each["domainId"]) == name]
    yield from by_id or [each for each in own if fold(str(each["domainName"])) == fold(name)]


def named(
    rows: Iterable[Row], field: str, name: str, kind: str, all_rows: Callable[[], Iterable[Row]] | None = None
) -> Row:
    """Return the entry whose field is equal to a name, ignoring case. NotFound: no entry or several entries have the
    name. kind: the kind of entry, for the message. all_rows: returns all entries, from which the message suggests
    similar names; needed if `rows` contains only some entries."""
    rows = list(rows)
    found = [each for each in rows if fold(str(each[field])) == fold(name)]
    if len(found) > 1:
        raise NotFound(f'{len(found)} tenants have a {kind} "{name}": name the tenant with --org and --tenant')
    if not found:
        known = existing(name, (str(each[field]) for each in (rows if all_rows is None else all_rows())))
        raise NotFound(f'{kind} "{name}" not found{known}; see: {list_command(kind.rsplit(maxsplit=1)[-1])}')
    return found[0]


def note_new(line: CommandLine, made: Row) -> None:
    """Print a note about the organization or tenant that a command has created."""
    new = made["new"]
    for each in new if isinstance(new, list) else ():
        line.note(f"{each} is new")

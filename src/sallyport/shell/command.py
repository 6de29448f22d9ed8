"""How a package adds commands to the command line: click commands in its `cli.py`, with a `CommandLine` as the context
object.

Most commands run an operation of the API, over the control socket of the running service. `line.run` adds orgId,
tenantId and domainId to the body if a domain is given:

    @domain.command()
    @click.argument("name")
    @click.pass_obj
    def confirm(line: CommandLine, name: str) -> None:
        line.run("/ad/updateDomainEnforcement", {"confirm": True}, domain=name)

A task that HTTP must not offer is a local operation: an operation of the installation that HTTP does not route. It is
declared like an operation of the API, but without a path and roles, because its caller is a user of the service's host:

    def local_operations(service: Tenancy) -> LocalOperations:
        local = LocalOperations()

        @local("token.revoke")
        async def revoke(body: RevokeToken) -> JSON:
            ...

        return local

    line.call("token.revoke", token="ci")
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TextIO, TypeAlias, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from sallyport.base.errors import NotFound
from sallyport.base.model import Model
from sallyport.base.text import existing, fold
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON, Row
from sallyport.settings.settings import Settings
from sallyport.shell.options import list_command

Form = Literal["table", "json", "csv", "jsonl"]
"""The output format of rows."""

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)
WorkT = TypeVar("WorkT", bound=Callable[..., Awaitable[JSON]])


Ready: TypeAlias = Callable[[], Awaitable[JSON]]
"""A function that runs a command with validated arguments."""
Command: TypeAlias = Callable[[Mapping[str, object]], Ready]
"""A function that validates the arguments of a command, in any thread. It raises Invalid, with the wrong fields but
without their values."""


def command(arguments: type[ArgumentsT], run: Callable[[ArgumentsT], Awaitable[JSON]]) -> Command:
    """Return a command that validates its arguments with a pydantic model, and passes them to `run`."""

    def ready(values: Mapping[str, object]) -> Ready:
        try:
            return partial(run, arguments.model_validate(dict(values)))
        except ValidationError as error:
            raise refusal(error) from None

    return ready


class LocalOperations(dict[str, Command]):
    """The local operations of an area, by name. Call it to declare one: the annotation of the function's parameter is
    the model of the body. A function without a parameter has an empty body."""

    def __call__(self, name: str) -> Callable[[WorkT], WorkT]:
        """Return a decorator that declares a local operation. Raises TypeError if the annotation is missing."""

        def declare(work: WorkT) -> WorkT:
            parameters, hints = list(inspect.signature(work).parameters), get_type_hints(work)
            if len(parameters) > 1 or not set(parameters) <= hints.keys():
                raise TypeError(f"{work!r} must have the signature (body: Model) -> JSON, or () -> JSON")
            body: type[BaseModel] = hints[parameters[0]] if parameters else Arguments
            self[name] = command(body, work if parameters else lambda _: work())
            return work

        return declare


class Commands:
    """The local operations of all packages, by name. Raises ValueError if two commands have the same name."""

    def __init__(self, areas: Iterable[Mapping[str, Command]]) -> None:
        self._commands: dict[str, Command] = {}
        for commands in areas:
            for name, each in commands.items():
                if name in self._commands:
                    raise ValueError(f"two commands have the name {name}")
                self._commands[name] = each

    def ready(self, name: str, arguments: Mapping[str, object]) -> Ready:
        """Validate the arguments of a command, and return the command, ready to run. This can run in any thread.

        Raises NotFound if there is no such command, and Invalid if an argument is wrong.
        """
        found = self._commands.get(name)
        if found is None:
            raise NotFound("the service does not know this command; it may have another version than the command line")
        return found(arguments)


class Tenants(Protocol):
    """The organizations and tenants of the installation."""

    async def tenant_id(self, organization: int, number: int) -> int:
        """Return a tenant's internal id. organization, number: the orgId and tenantId that the API uses. Raises
        NotFound."""

    async def numbers(self) -> Mapping[int, tuple[int, int]]:
        """Return the (orgId, tenantId) of each tenant, by the tenant's internal id."""


class Arguments(Model):
    """The base class for the arguments of commands. Commands without arguments use this class itself. An unknown
    argument raises Invalid."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def entries(value: JSON) -> list[Row]:
    """Return the objects in a list. Return an empty list if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class CommandLine(Protocol):
    """The connection of a command to the service, and the outputs of the command.

    Results go to standard output, and notes go to standard error. In both outputs, terminal control sequences are
    replaced.

    override: whether to change objects that files manage.
    """

    override: bool

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
        """Run an operation of the API in the running service. If no service runs, run the operation on the store.
        Return the answer. If the answer is not a JSON object, return an object with the answer in the field `message`.

        domain, domains: names or ids of domains. They are sent as domainId or domainIds, and orgId and tenantId are
        added. Without a domain, the body must contain orgId and tenantId. Raises SallyportError if the operation fails.
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

        field: the name of the list in the answer; None if the answer is an array. size: the number of entries of a
        page, at most the limit of the operation.
        """

    def listed_everywhere(
        self, path: str, field: str | None, body: Mapping[str, JSON] = MappingProxyType({}), /, *, size: int = 1000
    ) -> Iterator[Row]:
        """Yield the entries of a list operation for every tenant of the installation. Each entry gets two additional
        fields, `org` and `tenant`. For the arguments, see `listed`."""

    def call(self, command: str, /, **arguments: JSON) -> JSON:
        """Run a command in the running service. If no service runs, run the command on the store. Raises SallyportError
        if the command fails."""

    def row(self, command: str, /, **arguments: JSON) -> Row:
        """Run a command that returns an object (see `call`)."""

    def rows(self, command: str, /, **arguments: JSON) -> list[Row]:
        """Run a command that returns a list of objects (see `call`)."""

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        """Read a secret. At a terminal, show a prompt, and do not show the typed secret. Without a terminal, read the
        next line of standard input.

        confirm: whether to ask twice at a terminal.
        """

    def print(self, text: str, *, colour: str = "") -> None:
        """Print a line on standard output. colour: a name that click knows; it is used at a terminal, unless NO_COLOR
        is set (https://no-color.org)."""

    def print_rows(
        self,
        rows: Iterable[Row],
        columns: Sequence[str],
        form: Form | None = None,
        *,
        to: TextIO | None = None,
        spare: Sequence[str] = (),
    ) -> None:
        """Print rows to standard output, or to the file `to`.

        spare: columns that a table leaves out, in this order, if it is too wide for the terminal.

        A table (the default) and CSV contain only the given columns. JSON contains whole rows: `json` is one array,
        `jsonl` is one line for each row.
        """

    def rows_printer(
        self, columns: Sequence[str], form: Form | None, *, spare: Sequence[str] = ()
    ) -> Callable[[Sequence[Row]], None]:
        """Return a function that prints further rows of the same table each time, with the header before the first row.
        With `json`, it prints one line for each row."""

    def print_answer(self, answer: Row, text: str) -> None:
        """Print a text, such as the new id that an answer contains; nothing if the text is empty. With `json_answer`,
        print the whole answer as JSON instead."""

    def print_json(self, value: JSON) -> None:
        """Print indented JSON."""

    def note(self, text: str) -> None:
        """Print a line on standard error."""


def domains(line: CommandLine, name: str | None) -> Iterator[Row]:
    """Yield the domain with the given name or id, as GetAllDomains returns it. If `name` is None, yield
    every domain."""
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
    """Return the only entry with a name. Case is ignored. Raises NotFound if no entry has the name, or if several
    entries have it.

    field: the field of an entry that contains its name. kind: the kind of entry, for the message. all_rows: returns all
    entries, for suggestions in the message; None if `rows` already contains all entries.
    """
    rows = list(rows)
    found = [each for each in rows if fold(str(each[field])) == fold(name)]
    if len(found) > 1:
        raise NotFound(f'{len(found)} tenants have a {kind} "{name}": choose the tenant with --org and --tenant')
    if not found:
        known = existing(name, (str(each[field]) for each in (rows if all_rows is None else all_rows())))
        raise NotFound(f'{kind} "{name}" not found{known}; see: {list_command(kind.rsplit(maxsplit=1)[-1])}')
    return found[0]


def note_warnings(line: CommandLine, warnings: JSON, after: str = "") -> None:
    """Print the warnings of an answer on standard error. after: a text that follows each warning."""
    for warning in warnings if isinstance(warnings, list) else ():
        line.note(f"warning: {warning}{after}")


def note_new(line: CommandLine, made: Row) -> None:
    """Print a note if a command has created an organization or tenant."""
    new = made["new"]
    for each in new if isinstance(new, list) else ():
        line.note(f"{each} is new")
    if new:
        line.note("if a number is wrong, `sallyport tenant remove` removes the new tenant")

"""The command line of an area: click commands in `cli.py`, whose context object is a `CommandLine`.

A command runs an operation of the API, over the control socket of the running service. The body needs no orgId,
tenantId and domainId where a domain is named:

    @domain.command()
    @click.argument("name")
    @click.pass_obj
    def confirm(line: CommandLine, name: str) -> None:
        line.run("/ad/updateDomainEnforcement", {"confirm": True}, domain=name)

What the API has no operation for is a command, with named arguments:

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
"""Runs a command whose arguments are valid."""
Command: TypeAlias = Callable[[Mapping[str, object]], Ready]
"""Validates the arguments of a command, in any thread. Invalid: names fields, without values."""


def command(arguments: type[ArgumentsT], run: Callable[[ArgumentsT], Awaitable[JSON]]) -> Command:
    """Return a command with arguments of a model."""

    def ready(values: Mapping[str, object]) -> Ready:
        try:
            return partial(run, arguments.model_validate(dict(values)))
        except ValidationError as error:
            raise refusal(error) from None

    return ready


class Commands:
    """All commands of the service. ValueError: two areas have the same name."""

    def __init__(self, areas: Iterable[Mapping[str, Command]]) -> None:
        self._commands: dict[str, Command] = {}
        for commands in areas:
            for name, each in commands.items():
                if name in self._commands:
                    raise ValueError(f"two commands are called {name}")
                self._commands[name] = each

    def ready(self, name: str, arguments: Mapping[str, object]) -> Ready:
        """Validate the arguments of a command, in any thread. NotFound: no such command. Invalid."""
        found = self._commands.get(name)
        if found is None:
            raise NotFound("no such command; the running service may be of another version")
        return found(arguments)


class Tenants(Protocol):
    """Knows the tenants."""

    async def tenant_id(self, organization: int, number: int) -> int:
        """The tenant's internal id. NotFound."""

    async def numbers(self) -> Mapping[int, tuple[int, int]]:
        """Organization and tenant as bodies call them, by the tenant's internal id."""


class Arguments(Model):
    """The root of all commands' arguments; of itself, no arguments. An unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def entries(value: JSON) -> list[Row]:
    """Return the objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class CommandLine(Protocol):
    """The connection to the service and the two outputs, as the commands of an area use them.

    Standard output carries the result alone; notes go to standard error. No output can send control sequences to a
    terminal.
    """

    def settings(self) -> Settings:
        """Return the settings of the service. ConfigError."""

    def run(
        self,
        path: str,
        body: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] = MappingProxyType({}),
        /,
        *,
        domain: str | None = None,
        domains: Sequence[str] | None = None,
    ) -> Row:
        """Run an operation of the API, in the running service or on the store if none runs, and return its answer;
        a confirmation text as `message`.

        domain, domains: by name or id; they become domainId and domainIds of the body. A domain also tells orgId and
        tenantId, which the body must have otherwise. SallyportError: it failed.
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
        """Yield the entries of a list, page by page. field: their place in the answer; None: the answer is an array.
        size: the entries of a page, at most what the operation gives."""

    def listed_everywhere(
        self, path: str, field: str | None, body: Mapping[str, JSON] = MappingProxyType({}), /, *, size: int = 1000
    ) -> Iterator[Row]:
        """`listed` for each tenant of the installation, whose numbers become `org` and `tenant` of the entries."""

    def call(self, command: str, /, **arguments: JSON) -> JSON:
        """Run a command in the running service, or on the store if none runs. SallyportError: it failed."""

    def row(self, command: str, /, **arguments: JSON) -> Row:
        """`call` a command that returns an object."""

    def rows(self, command: str, /, **arguments: JSON) -> list[Row]:
        """`call` a command that returns a list of objects."""

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        """Return the octets of standard input's next line; at a terminal, prompt without echo. confirm: ask twice."""

    def print(self, text: str) -> None:
        """Print a line on standard output."""

    def print_rows(
        self, rows: Iterable[Row], columns: Sequence[str], form: Form | None = None, *, to: TextIO | None = None
    ) -> None:
        """Print rows on standard output, or `to` a file: the columns as a table (the default) or as CSV, or whole rows
        as JSON, in one array or (jsonl) in a line for each row."""

    def print_json(self, value: JSON) -> None:
        """Print indented JSON."""

    def note(self, text: str) -> None:
        """Print a line on standard error."""


def domains(line: CommandLine, name: str | None) -> Iterator[Row]:
    """Yield the domain with a name or id, or every domain of the installation, as GetAllDomains lists them."""
    path, field, size = "/ad/GetAllDomains", "domains", 100
    if name is None:
        yield from line.listed_everywhere(path, field, size=size)
        return
    own = list(line.listed(path, field, domain=name, size=size))  # of its tenant
    by_id = [each for each in own if str(each["domainId"]) == name]
    yield from by_id or [each for each in own if fold(str(each["domainName"])) == fold(name)]


def named(
    rows: Iterable[Row], field: str, name: str, kind: str, all_rows: Callable[[], Iterable[Row]] | None = None
) -> Row:
    """Return the entry of a list whose field is a name, in any case. NotFound.

    kind: the kind of thing, for the message. all_rows: returns the entries whose names the message suggests, if `rows`
    are only a part of them.
    """
    rows = list(rows)
    found = [each for each in rows if fold(str(each[field])) == fold(name)]
    if len(found) > 1:
        raise NotFound(f'{len(found)} tenants have a {kind} "{name}": name the tenant with --org and --tenant')
    if not found:
        known = existing(name, (str(each[field]) for each in (rows if all_rows is None else all_rows())))
        raise NotFound(f'{kind} "{name}" not found{known}; see: {list_command(kind.rsplit(maxsplit=1)[-1])}')
    return found[0]


def note_new(line: CommandLine, made: Row) -> None:
    """Report the organization and the tenant that a command has made."""
    new = made["new"]
    for each in new if isinstance(new, list) else ():
        line.note(f"{each} is new")

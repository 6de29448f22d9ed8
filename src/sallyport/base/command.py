"""What the command line asks of the running service, by name and with named arguments, over its control socket.

A slice lists its commands in `commands.py`:

    def commands(service: Tenancy) -> dict[str, Command]:
        async def revoke(arguments: RevokeToken) -> JSON:
            ...
        return {"token.revoke": command(RevokeToken, revoke)}

and has the words for a person around them in `cli.py`: click commands whose context object is a `CommandLine`.

    @token.command()
    @click.argument("token")
    @click.pass_obj
    def revoke(line: CommandLine, token: str) -> None:
        line.call("token.revoke", token=token)
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, Protocol, TextIO, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sallyport.base.config import Settings
from sallyport.base.errors import NotFound
from sallyport.base.model import Model
from sallyport.base.validation import refusal, unfit
from sallyport.base.wire import JSON, Row

Form = Literal["table", "json", "csv", "jsonl"]
"""How rows are printed: for people, or for programs."""

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


Ready: TypeAlias = Callable[[], Awaitable[JSON]]
"""A command whose arguments are right, to be run."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command; made by `command`. ready: judges what `arguments` describes, in any thread."""

    arguments: type[BaseModel]
    ready: Callable[[Mapping[str, JSON]], Ready]

    async def run(self, values: Mapping[str, JSON]) -> JSON:
        """Judge the arguments and run it."""
        return await self.ready(values)()


def command(arguments: type[ArgumentsT], run: Callable[[ArgumentsT], Awaitable[JSON]]) -> Command:
    """A command that validates its arguments (Invalid, naming fields without values) and then runs."""

    def ready(values: Mapping[str, JSON]) -> Ready:
        try:
            return partial(run, arguments.model_validate(dict(values)))
        except ValidationError as error:
            raise refusal(error) from None

    return Command(arguments, ready)


class Commands:
    """All commands of the service; a name that two slices claim is an error at the start."""

    def __init__(self, slices: Iterable[Mapping[str, Command]]) -> None:
        self._commands: dict[str, Command] = {}
        for commands in slices:
            for name, each in commands.items():
                if name in self._commands:
                    raise ValueError(f"two commands are called {name}")
                self._commands[name] = each

    @property
    def names(self) -> tuple[str, ...]:
        """Every command's name, sorted."""
        return tuple(sorted(self._commands))

    def ready(self, name: str, arguments: Mapping[str, JSON]) -> Ready:
        """Judge one command, in any thread. NotFound: no such command. Invalid: names the fields."""
        found = self._commands.get(name)
        if found is None:
            raise NotFound("no such command; the running service may be of another version")
        return found.ready(arguments)

    async def run(self, name: str, arguments: Mapping[str, JSON]) -> JSON:
        """Judge one command and run it; raises what the service raises, too."""
        return await self.ready(name, arguments)()


class NamedDomain(Protocol):
    """A domain that a command has named."""

    @property
    def id(self) -> int:
        """Its domainId."""

    @property
    def name(self) -> str:
        """Its name."""


class Tenants(Protocol):
    """Knows the tenants: a command that names an organization and a tenant makes them where they are new."""

    async def ensure_tenant(self, organization: int, number: int) -> int:
        """The tenant's internal id."""

    async def numbers(self) -> Mapping[int, tuple[int, int]]:
        """Organization and tenant as bodies call them, by the tenant's internal id."""


class Arguments(Model):
    """The root of all commands' arguments: an unknown one is an error, and values are not repeated."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class OfTenant(Arguments):
    """org and tenant: the numbers that bodies call orgId and tenantId."""

    org: int = Field(ge=1)
    tenant: int = Field(ge=1)


def entries(value: JSON) -> list[Row]:
    """The entries of a list that a command has given."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _hex(value: str) -> str:
    try:
        bytes.fromhex(value)
    except ValueError:
        raise unfit("hex octets") from None
    return value


HexOctets = Annotated[str, AfterValidator(_hex)]
"""Octets in hex: a secret or a password may be in any encoding, and JSON carries text."""


class CommandLine(Protocol):
    """What the commands of a slice work with: the way to the service, and the two outputs.

    Standard output carries what was asked for and nothing else; notes for the person go to standard error. Nothing
    that is printed can send control sequences to a terminal, wherever it came from.
    """

    def settings(self) -> Settings:
        """The settings that the service runs with. ConfigError."""

    def call(self, command: str, /, **arguments: JSON) -> JSON:
        """Run a command in the running service, or on the store where none runs. SallyportError: it was not done."""

    def row(self, command: str, /, **arguments: JSON) -> Row:
        """`call` for a command that gives one entry."""

    def rows(self, command: str, /, **arguments: JSON) -> list[Row]:
        """`call` for a command that gives a list of entries."""

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        """The octets of standard input's next line without its end; typed unseen at a terminal, to confirm twice."""

    def print(self, text: str) -> None:
        """A line on standard output."""

    def print_rows(
        self, rows: Iterable[Row], columns: Sequence[str], form: Form | None = None, *, to: TextIO | None = None
    ) -> None:
        """Rows on standard output, or `to` a file: the columns as a table (the default) or as CSV, or everything as
        JSON, in one array or (jsonl) in a line for each row."""

    def print_json(self, value: JSON) -> None:
        """Indented JSON on standard output."""

    def note(self, text: str) -> None:
        """A line on standard error."""


def pages(line: CommandLine, command: str, **arguments: JSON) -> Iterator[Row]:
    """All entries of a list that a command gives page by page."""
    after = 0
    while page := line.rows(command, after=after, **arguments):
        yield from page
        after += len(page)

"""What the command line asks of the running service, by name and with named arguments, over its control socket.

A slice lists its commands in `commands.py`:

    def commands(service: Tenancy) -> dict[str, Command]:
        async def revoke(arguments: RevokeToken) -> JSON:
            ...
        return {"token.revoke": command(RevokeToken, revoke)}
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sallyport.base.errors import NotFound
from sallyport.base.validation import refusal

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A value that JSON can carry."""

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Command:
    """One command; made by `command`, which knows that `run` takes what `arguments` describes."""

    arguments: type[BaseModel]
    run: Callable[[Mapping[str, JSON]], Awaitable[JSON]]


def command(arguments: type[ArgumentsT], run: Callable[[ArgumentsT], Awaitable[JSON]]) -> Command:
    """A command that validates its arguments (Invalid, naming fields without values) and then runs."""

    async def checked(values: Mapping[str, JSON]) -> JSON:
        try:
            parsed = arguments.model_validate(dict(values))
        except ValidationError as error:
            raise refusal(error) from None
        return await run(parsed)

    return Command(arguments, checked)


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

    async def run(self, name: str, arguments: Mapping[str, JSON]) -> JSON:
        """Run one command. NotFound: no such command. Invalid: names the fields. Else what the service raises."""
        found = self._commands.get(name)
        if found is None:
            raise NotFound("no such command; the running service may be of another version")
        return await found.run(arguments)


class Tenants(Protocol):
    """Knows the tenants: a command that names an organization and a tenant makes them where they are new."""

    async def ensure_tenant(self, organization: int, number: int) -> int:
        """The tenant's internal id."""


class Arguments(BaseModel):
    """The root of all commands' arguments: an unknown one is an error, and values are not repeated."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class OfTenant(Arguments):
    """org and tenant: the numbers that bodies call orgId and tenantId."""

    org: int = Field(ge=1)
    tenant: int = Field(ge=1)

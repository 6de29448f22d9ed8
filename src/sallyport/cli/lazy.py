"""A group of commands of which each is imported when it is used."""

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """listed: by name, where a command is (`module:object`) and its line in the help, which no import is worth."""

    def __init__(self, *args: object, listed: Mapping[str, tuple[str, str]], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names."""
        return sorted(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, or None where there is none of that name."""
        if cmd_name not in self._listed:
            return None
        module, _, name = self._listed[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(self._listed.items())])

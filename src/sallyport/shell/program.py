"""What the programs `sallyport` and `sallyport-agent` share: groups whose commands are imported when they are used, and
the exit status and the message of an error."""

import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from sallyport.base.errors import SallyportError
from sallyport.base.text import printable
from sallyport.host.owner import user_name
from sallyport.shell.exits import ExitStatus
from sallyport.shell.options import Group, with_columns

Sections: TypeAlias = Mapping[str, Mapping[str, tuple[str, str]]]
"""The commands of a group by heading, the most used first. An entry is name: (module:object, line in the help). So the
help is shown without importing a command."""
Usage: TypeAlias = Callable[[click.ClickException], str]
"""Returns the message about a command line that click does not accept."""
Tell: TypeAlias = Callable[[str], None]
"""Tells the text of an error to the user."""


class LazyGroup(Group):
    """A click group that imports a command only when the command is used. sections: the headings of the help, in order,
    with the commands under each heading."""

    def __init__(self, *args: object, sections: Sections, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.sections = sections
        self._listed = {name: module for listed in sections.values() for name, (module, _) in listed.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name. Return None if there is no such command."""
        if cmd_name not in self._listed:
            return None
        module, _, name = self._listed[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return with_columns(command) if cmd_name == "list" else command  # findings of doctor are not cut

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or the options, that begin with a text, without importing a command."""
        listed = [entry for each in self.sections.values() for entry in each.items()]
        found = [CompletionItem(name, help=text) for name, (_, text) in listed if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(map(len, self._listed))
        for heading, listed in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in listed.items()])


def main(root: click.Command, name: str, usage: Usage, tell: Tell | None = None) -> None:
    """Run a program, and exit. `ExitStatus` has the exit statuses."""
    os.umask(0o077)  # new files can be read only by their owner
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the encoding of the terminal may not have all characters
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(lambda: root(standalone_mode=False), name, usage, tell))


def run(command: Callable[[], object], name: str, usage: Usage, tell: Tell | None = None) -> int:
    """Run a command, and return its exit status. An error is printed as one line on standard error, after the name of
    the program, unless `tell` is given."""
    try:
        result = command()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _print_usage_error(error, name, usage)
    except (click.Abort, SallyportError, OSError, BaseExceptionGroup) as error:
        return _tell_error(error, tell or partial(print_error, name))
    return result if isinstance(result, int) else ExitStatus.DONE


def _print_usage_error(error: click.ClickException, name: str, usage: Usage) -> int:
    """Print a usage error, and how to see the help. Return the exit status."""
    click.echo(printable(f"{name}: {usage(error)}"), err=True)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"Try: {context.command_path} --help", err=True)
    return error.exit_code


def print_error(name: str, text: str) -> None:
    """Print an error as one line on standard error, after the name of the program."""
    click.echo(printable(f"{name}: {text}"), err=True)


def _tell_error(error: BaseException, tell: Tell) -> int:
    """Tell the text of an error, and return the exit status. Unexpected exceptions propagate."""
    ours = _first(error) if isinstance(error, BaseExceptionGroup) else error
    if ours is None:
        raise error
    if isinstance(error.__cause__, KeyboardInterrupt):
        return ExitStatus.INTERRUPTED
    if isinstance(
        ours, BrokenPipeError
    ):  # the reader (such as head) has closed the pipe, so flushing at exit would fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    text = str(ours)
    if isinstance(ours, OSError):
        if ours.filename is None:  # an admin cannot correct this error, so the traceback is needed
            raise error
        reason = f"permission denied for user {user_name(os.geteuid())}"
        text = f"{ours.filename}: {reason if isinstance(ours, PermissionError) else ours.strerror}"
    tell(text or "nothing was done")
    return ExitStatus.FAILED


def _first(group: BaseExceptionGroup[BaseException]) -> SallyportError | OSError | None:
    """Return the first error of a group, even of a nested group. If the database is away, several tasks may fail with
    the same error. Return None if another exception than a SallyportError is among them. A single OSError is
    returned, too."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found, *others = found.exceptions
        if others and group.split(SallyportError)[1] is not None:
            return None
    return found if isinstance(found, SallyportError | OSError) else None

"""Click classes for the commands of all packages: groups, and types of options."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from sallyport.base.clock import SECOND, from_iso, iso, now_us
from sallyport.base.text import nearest

_CHOSEN: Final = "sallyport.columns"
_ANSWER: Final = "sallyport.answer"
HIDDEN: Final = "sallyport.hidden"
"""The values that a command does not get as arguments, by the names of their parameters, in the context of click."""
_SENTENCE = 1000
"""Maximum number of characters of a command's first sentence in the help."""


_UNITS: Final = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)


class Time(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """An option type for a time: ISO 8601 text, or a duration such as 24h.

    sign: -1 for a duration before now, 1 for a duration after now. accepted: a phrase with examples, for error
    messages. allows_empty: whether an empty text is accepted; it stays empty.
    """

    name = "time"

    def __init__(self, sign: int, accepted: str, *, allows_empty: bool = False) -> None:
        self._sign = sign
        self.accepted = accepted
        self._allows_empty = allows_empty

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Parse a time, and return ISO 8601 text in UTC. Raises BadParameter."""
        text = str(value).strip()
        if not text and self._allows_empty:
            return ""
        span = _SPAN.fullmatch(text)
        try:
            return iso(now_us() + self._sign * int(span[1]) * _UNITS[span[2]] * SECOND if span else from_iso(text))
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is not a valid time.", param, ctx)


class Minutes(click.IntRange):
    """An option type for a number of minutes: a whole number, or a duration such as 90m or 12h. low, high: the smallest
    and the greatest number."""

    name = "minutes"
    metavar = "MINUTES|90m|12h|2d"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of minutes. Raises BadParameter."""
        span = _SPAN.fullmatch(str(value).strip())
        given: object = int(span[1]) * _UNITS[span[2]] // 60 if span else value
        return super().convert(given, param, ctx)  # type: ignore[arg-type]  # click converts any object


PAST: Final = Time(-1, "a time such as 2026-11-23, 2026-11-23T10:00 or 24h")
FUTURE: Final = Time(1, "a time such as 90d, 12h, 2027-11-23 or 2027-11-23T10:00")


NUMBER: Final = click.IntRange(min=1)
"""An option type for an id or a count."""
in_domain = click.option("--domain", required=True, help="The domain's name or domainId.")
any_domain = click.option("--domain", help="Show only entries of this domain (name or domainId).")
json_form = click.option("--json", "form", flag_value="json", help="Print JSON.")
csv_form = click.option("--csv", "form", flag_value="csv", help="Print CSV.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _choose_json(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[_ANSWER] = value


json_answer = click.option(
    "--json", is_flag=True, expose_value=False, callback=_choose_json, help="Print the whole answer as JSON."
)
"""The option of a command that prints a part of an answer, with `CommandLine.print_answer`."""


class Pair(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """An option type for `NAME=VALUE`. The value is an object with `name` and `value`. allows_empty: whether an empty
    text is accepted; it stays empty."""

    name = "pair"

    def __init__(self, *, allows_empty: bool = False) -> None:
        self._allows_empty = allows_empty

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return the parts of the text. Raises BadParameter."""
        if value == "" and self._allows_empty:
            return ""
        name, sign, text = str(value).partition("=")
        if not sign:
            self.fail(f'"{value}" is not understood; give NAME=VALUE', param, ctx)
        return {"name": name.strip(), "value": text.strip()}


class InputFile(click.Path):
    """An option type for a file that a command reads. Click's own type reports a permission error as a missing file."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path. Raises UsageError if the path is not a file that this user can read."""
        try:
            Path(value).stat()
        except FileNotFoundError:
            pass  # click reports the missing file
        except OSError as error:
            self.fail(f"{os.fspath(value)}: {error.strerror}", param, ctx)
        return super().convert(value, param, ctx)


class Group(click.Group):
    """A group of commands. The help lists the commands in `first` before all other commands. The other commands keep
    the order of their declaration. A command with the option --json for rows also gets the option --columns."""

    def __init__(self, *args: object, first: Sequence[str] = (), **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.first = first

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, and give it the option --columns if it prints rows."""
        super().add_command(with_columns(cmd), name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return [*self.first, *(name for name in self.commands if name not in self.first)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands to the help, each with its whole first sentence."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        texts = [(name, each.get_short_help_str(_SENTENCE)) for name, each in commands.items() if each is not None]
        with formatter.section("Commands"):
            formatter.write_dl(texts)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the called command. Raises UsageError if there is no such command; the message suggests a similar
        name."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            wanted = nearest(name, known) or f" Commands: {', '.join(known)}."
            raise click.UsageError(f'There is no command "{name}".{wanted}', ctx)
        return super().resolve_command(ctx, args)


def with_columns(command: click.Command) -> click.Command:
    """Give a command the option --columns if it has the option --json for rows. Return the command."""
    prints_rows = any(each.name == "form" and "--json" in each.opts for each in command.params)
    if prints_rows and not any("--columns" in each.opts for each in command.params):
        command.params.append(
            click.Option(
                ["--columns"],
                metavar="NAME,...",
                expose_value=False,
                callback=_choose,
                help="Columns to show. A narrow terminal gets fewer columns and cut cells; --json has whole values.",
            )
        )
    return command


def _choose(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    context.meta[_CHOSEN] = tuple(filter(None, (each.strip() for each in (value or "").split(","))))


def chosen_columns() -> tuple[str, ...] | None:
    """Return the columns that the user has chosen for the command that runs now; an empty tuple for its usual columns.
    Return None if the command has no option --columns."""
    context = click.get_current_context(silent=True)
    chosen: tuple[str, ...] | None = None if context is None else context.meta.get(_CHOSEN)
    return chosen


def wants_json() -> bool:
    """Return whether the command that runs now has an option --json, and the user has given it."""
    context = click.get_current_context(silent=True)
    if context is None:
        return False
    given = context.params
    return bool(context.meta.get(_ANSWER) or given.get("form") == "json" or given.get("as_json"))


def option_name(parameter: click.Parameter) -> str:
    """Return the name of an option as the user types it. Return the name of an argument as the help shows it."""
    if isinstance(parameter, click.Argument):
        return (parameter.name or "").upper()
    return max(parameter.opts, key=len)


def value_of(parameter: click.Parameter, context: click.Context) -> object:
    """Return the value of a parameter of the command that runs now, even if the command does not get the value as an
    argument."""
    hidden: Mapping[str, object] = context.meta.get(HIDDEN, {})
    return context.params.get(parameter.name or "", hidden.get(parameter.name or ""))


def scope_of(command: click.Command, context: click.Context) -> list[str]:
    """Return the required options of `command`, for a suggestion to the user. The values are those that the user gave
    to the command that runs now (`context`). Each element is an option and its value, such as `--domain default`.

    The value can be that of an argument with the option's name, such as DOMAIN in `provider set`. In the group of the
    option's kind it can be that of the argument NAME, as in `domain check`.
    """
    given = {option_name(each): value_of(each, context) for each in context.command.params}
    group = context.parent.info_name if context.parent is not None else None
    given |= {f"--{name.lower()}": value for name, value in given.items() if not name.startswith("-")}
    given.setdefault(f"--{group}", given.get("--name"))
    names = [option_name(each) for each in command.params if each.required and isinstance(each, click.Option)]
    return [f"{name} {shlex.quote(str(given[name]))}" for name in names if given.get(name)]


def list_command(group: str) -> str:
    """Return the command that lists the objects of a group, such as `sallyport user list --domain default`. The
    required options are included (see `scope_of`)."""
    context, words = click.get_current_context(silent=True), f"sallyport {group} list"
    root = context.find_root().command if context is not None else None
    if context is None or not isinstance(root, click.Group):
        return words
    found = root.get_command(context, group)
    found = found.get_command(context, "list") if isinstance(found, click.Group) else None
    return " ".join((words, *scope_of(found, context))) if found is not None else words

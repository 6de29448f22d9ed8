"""The man pages, written from the declarations of the commands: sallyport(1), and one for each of its commands.

    python -m sallyport.cli.man DIRECTORY

The build of the Debian packages runs this. The date of the pages is that of SOURCE_DATE_EPOCH, or else today.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from sallyport import __version__
from sallyport.cli.main import root
from sallyport.host.systemd import CONFIG_FILE, DATA_DIR
from sallyport.shell.exits import ExitStatus

NAME = "sallyport"
FILES = (
    (str(CONFIG_FILE), "The settings, each with its default."),
    (str(DATA_DIR), "The data. A removal of the package keeps it, a purge deletes it."),
    (f"{DATA_DIR}/backups", "The nightly backups, and one before each upgrade; the last fourteen."),
)
ENVIRONMENT = (
    ("SALLYPORT_...", "A variable for each setting; it overrides the setting in the file."),
    ("NO_COLOR", "If this variable is not empty, no output has colours. Without a terminal, none has colours either."),
)


def write(directory: Path) -> list[Path]:
    """Write all pages into a directory, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in pages():
        path = directory / f"{name}.1"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    context = click.Context(root, info_name=NAME, **root.context_settings)
    commands = list(_commands(root, context))
    yield NAME, _page(NAME, root, [*_options(context), *_overview(commands)])
    for inner in commands:
        name = f"{NAME}-{inner.info_name}"
        yield name, _page(name, inner.command, [*_usage(inner), *_options(inner), *_subcommands(inner)])


def _commands(group: click.Group, context: click.Context) -> Iterator[click.Context]:
    """Yield a context for each command of a group that is not hidden."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield click.Context(command, info_name=name, parent=context)


def _page(name: str, command: click.Command, parts: Iterable[str]) -> str:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    title = f'.TH {name.upper()} 1 "{date}" "Sallyport {__version__}" "Sallyport"'
    summary = command.get_short_help_str(1000).rstrip(".")
    lines = [title, ".SH NAME", f"{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS", *parts]
    if name == NAME:
        lines[4:4] = [f"\\fB{NAME}\\fR [OPTIONS] COMMAND [ARGS]...", ".SH DESCRIPTION", *_paragraphs(command)]
        statuses = ((str(int(each)), each.meaning) for each in ExitStatus)
        lines += [".SH EXIT STATUS", *_items(statuses), ".SH FILES", *_items(FILES)]
        lines += [".SH ENVIRONMENT", *_items(ENVIRONMENT)]
    else:
        lines += [".SH SEE ALSO", f".BR {NAME} (1)"]
    return "\n".join(lines) + "\n"


def _overview(commands: Iterable[click.Context]) -> Iterator[str]:
    yield ".SH COMMANDS"
    yield "Each command has a page of its own, such as sallyport\\-client(1)."
    yield from _items((each.info_name or "", each.command.get_short_help_str(1000)) for each in commands)


def _usage(context: click.Context) -> Iterator[str]:
    yield _synopsis(context)
    yield ".SH DESCRIPTION"
    yield from _paragraphs(context.command)


def _synopsis(context: click.Context) -> str:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{_text(context.command_path)}\\fR {_text(pieces)}"


def _options(context: click.Context) -> Iterator[str]:
    records = (each.get_help_record(context) for each in context.command.get_params(context))
    yield ".SH OPTIONS"
    yield from _items(record for record in records if record is not None)


def _subcommands(context: click.Context) -> Iterator[str]:
    """Yield a section for each command below a group, those of groups inside it too."""
    found = list(_below(context))
    if found:
        yield ".SH COMMANDS"
    for inner in found:
        yield f'.SS "{_text(inner.command_path.removeprefix(f"{NAME} "))}"'
        yield _synopsis(inner)
        yield from _paragraphs(inner.command, first=".PP")
        records = (each.get_help_record(inner) for each in inner.command.get_params(inner))
        yield from _items(record for record in records if record is not None)


def _below(context: click.Context) -> Iterator[click.Context]:
    if isinstance(context.command, click.Group):
        for inner in _commands(context.command, context):
            is_group = isinstance(inner.command, click.Group)
            yield from _below(inner) if is_group else (inner,)


def _paragraphs(command: click.Command, *, first: str = "") -> Iterator[str]:
    """Yield the help of a command. first: the request before the first paragraph."""
    for number, each in enumerate(re.split(r"\n\s*\n", (command.help or "").replace("\b", ""))):
        before = ".PP" if number else first
        if before:
            yield before
        yield _text(" ".join(each.split()))


def _items(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, meaning in items:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(" ".join(meaning.split())))


def _text(text: str) -> str:
    """Escape a text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    write(Path(sys.argv[1]))

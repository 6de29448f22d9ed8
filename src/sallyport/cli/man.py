"""The man pages, written from the declarations of the commands: sallyport(1), and one for each of its commands.

    python -m sallyport.cli.man SHARE [sallyport-agent]

The build of the Debian packages runs this, and gets the scripts of the shells as well. SHARE: /usr/share of the
package. The date of the pages is that of SOURCE_DATE_EPOCH, or else today.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from sallyport import __version__
from sallyport.agent.program import root as agent_root
from sallyport.agent.templates import AGENTS
from sallyport.cli.completion import script
from sallyport.cli.main import root
from sallyport.host.systemd import AGENT_PROGRAM, CONFIG_FILE, DATA_DIR
from sallyport.shell.exits import ExitStatus

COMPLETION = {
    "bash": "bash-completion/completions/{name}",
    "zsh": "zsh/vendor-completions/_{name}",
    "fish": "fish/vendor_completions.d/{name}.fish",
}
"""The files in /usr/share in which Debian's shells find the scripts of programs."""
ENVIRONMENT = (
    ("SALLYPORT_...", "A variable for each setting; it overrides the setting in the file."),
    ("NO_COLOR", "If this variable is not empty, no output has colours. Without a terminal, none has colours either."),
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its command line. section: of the manual. files, environment: with their meanings."""

    root: click.Group
    name: str
    section: int
    files: Sequence[tuple[str, str]]
    environment: Sequence[tuple[str, str]]


SERVICE = Program(
    root,
    "sallyport",
    1,
    (
        (str(CONFIG_FILE), "The settings, each with its default."),
        (str(DATA_DIR), "The data. A removal of the package keeps it, a purge deletes it."),
        (f"{DATA_DIR}/backups", "The nightly backups, and one before each upgrade; the last fourteen."),
    ),
    ENVIRONMENT,
)
AGENT = Program(
    agent_root,
    AGENT_PROGRAM,
    8,  # section 1 has sallyport-agent(1), of the command `sallyport agent`
    tuple((str(each.config), f"The configuration file of the {each.agent} agent.") for each in AGENTS.values()),
    (),
)


def write_share(share: Path, program: Program) -> None:
    """Write the man pages and the scripts of the shells where a Debian has them. share: /usr/share of the package."""
    write(share / "man" / f"man{program.section}", program)
    for shell, place in COMPLETION.items():
        path = share / place.format(name=program.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(program.root, program.name, shell), encoding="utf-8")


def write(directory: Path, program: Program) -> list[Path]:
    """Write all pages of a program into a directory, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in pages(program):
        path = directory / f"{name}.{program.section}"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def pages(program: Program) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    context = click.Context(program.root, info_name=program.name, **program.root.context_settings)
    commands = list(_commands(program.root, context))
    yield program.name, _first_page(program, context, commands)
    for inner in commands:
        name = f"{program.name}-{inner.info_name}"
        parts = [_synopsis(inner), ".SH DESCRIPTION", *_paragraphs(inner.command), *_options(inner)]
        see = [".SH SEE ALSO", f".BR {_text(program.name)} ({program.section})"]
        yield name, _page(program, name, inner.command, [*parts, *_subcommands(program, inner), *see])


def _commands(group: click.Group, context: click.Context) -> Iterator[click.Context]:
    """Yield a context for each command of a group that is not hidden."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield click.Context(command, info_name=name, parent=context)


def _page(program: Program, name: str, command: click.Command, parts: Iterable[str]) -> str:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    title = f'.TH {name.upper()} {program.section} "{date}" "Sallyport {__version__}" "Sallyport"'
    summary = command.get_short_help_str(1000).rstrip(".")
    lines = [title, ".SH NAME", f"{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS", *parts]
    return "\n".join(lines) + "\n"


def _first_page(program: Program, context: click.Context, commands: Sequence[click.Context]) -> str:
    """Return the page of the program: its options, its commands, and its exit statuses."""
    listed = ((each.info_name or "", each.command.get_short_help_str(1000)) for each in commands)
    example = _text(f"{program.name}-{commands[0].info_name}({program.section})")
    parts = [_synopsis(context), ".SH DESCRIPTION", *_paragraphs(program.root), *_options(context)]
    parts += [".SH COMMANDS", f"Each command has a page of its own, such as {example}.", *_items(listed)]
    parts += [".SH EXIT STATUS", *_items((str(int(each)), each.meaning) for each in ExitStatus)]
    parts += [".SH FILES", *_items(program.files)]
    if program.environment:
        parts += [".SH ENVIRONMENT", *_items(program.environment)]
    return _page(program, program.name, program.root, parts)


def _synopsis(context: click.Context) -> str:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{_text(context.command_path)}\\fR {_text(pieces)}"


def _options(context: click.Context) -> Iterator[str]:
    records = (each.get_help_record(context) for each in context.command.get_params(context))
    yield ".SH OPTIONS"
    yield from _items(record for record in records if record is not None)


def _subcommands(program: Program, context: click.Context) -> Iterator[str]:
    """Yield a section for each command below a group, those of groups inside it too."""
    found = list(_below(context))
    if found:
        yield ".SH COMMANDS"
    for inner in found:
        yield f'.SS "{_text(inner.command_path.removeprefix(f"{program.name} "))}"'
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
    write_share(Path(sys.argv[1]), AGENT if AGENT_PROGRAM in sys.argv else SERVICE)

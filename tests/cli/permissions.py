"""A program that runs every command as a user without rights and prints the result of each command.

    python -m tests.cli.permissions FOLDER

The program imports everything first. A child process for each command gives up root. The program makes FOLDER readable.
"""

import json
import os
import pkgutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from socket import AF_UNIX, socket
from typing import NoReturn

import click

import sallyport
from sallyport.cli.main import root, run

NOBODY = 65534
LIMIT_S = 30


def leaves(
    command: click.Command = root, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that is not a group, with the words of its name."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        assert found is not None
        yield from leaves(found, (*words, name))


def arguments(command: click.Command, file: str) -> list[str]:
    """Return a value of the right type for each required parameter. A path gets the value `file`, and a path of a
    folder gets the folder of this file."""
    given: list[str] = []
    for each in command.params:
        is_file = isinstance(each.type, click.Path | click.File)
        if not each.required and not (is_file and isinstance(each, click.Option)):
            continue
        is_folder = isinstance(each.type, click.Path) and not each.type.file_okay
        value = str(Path(file).parent) if is_folder else file if is_file else _value(each.type)
        if isinstance(each, click.Argument):
            given.append(value)
        else:
            given[:0] = [each.opts[0], value]
    return given + ["--yes"] * any("--yes" in each.opts for each in command.params)


def _value(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return str(next(iter(kind.choices)))
    return "1" if isinstance(kind, click.types.IntParamType | click.types.FloatParamType) else "x"


def situations(folder: Path) -> Mapping[str, tuple[dict[str, str], list[str], str]]:
    """Return the environment, options and file of each situation.

    The situations are a data directory of another user, unreadable settings, unreadable arguments, and a closed socket.
    """
    private, open_, listening = (folder / name for name in ("private", "open", "listening"))
    for path, mode in ((private, 0o700), (open_, 0o755), (listening, 0o755)):
        path.mkdir()
        path.chmod(mode)
        for name in ("lock", "sallyport.db", "master.key", "input"):
            (path / name).write_text("")
            (path / name).chmod(0o600 if path == private else 0o644)
        (path / "certs").mkdir(mode=0o700)
    (folder / "hidden").write_text("x")
    (folder / "hidden").chmod(0o600)
    sock = socket(AF_UNIX)
    sock.bind(str(listening / "control.sock"))
    sock.listen()
    (listening / "control.sock").chmod(0o600)
    sock.detach()
    named = {path: {"SALLYPORT_DATA_DIR": str(path)} for path in (private, open_, listening)}
    return {
        "directory": (named[private], [], str(open_ / "input")),
        "settings": ({}, ["--config", str(folder / "hidden")], str(open_ / "input")),
        "argument": (named[private], [], str(private / "input")),
        "unreadable argument": (named[private], [], str(folder / "hidden")),
        "read-only": (named[open_], [], str(open_ / "input")),
        "socket": (named[listening], [], str(open_ / "input")),
    }


@dataclass(frozen=True)
class Case:
    """A command line in a situation. name: the situation and the command."""

    name: str
    words: Sequence[str]
    environ: Mapping[str, str]


def outcomes(cases: Sequence[Case], folder: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    """Run the cases as user `nobody`, one after the other. Yield the name, the exit status and the output of each. A
    negative status is the number of a signal.

    One child process runs all cases, because a fork of this large process takes ten times as long as a command. If a
    case ends the child, the next child runs those that are left.
    """
    while cases:
        with ExitStack() as files:
            outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in cases]
            ended, ends = os.pipe()
            child = os.fork()
            if child == 0:
                _run_all(cases, folder, [output.fileno() for output in outputs], ends)
            os.close(ends)
            with os.fdopen(ended, "rb") as pipe:
                statuses = [*pipe.read()]
            _, waited = os.waitpid(child, 0)
            if len(statuses) < len(cases):
                statuses.append(os.waitstatus_to_exitcode(waited))
            for case, status, output in zip(cases, statuses, outputs, strict=False):
                output.seek(0)
                yield case.name, (status, output.read().decode(errors="replace"))
        cases = cases[len(statuses) :]


def _run_all(cases: Sequence[Case], folder: Path, outputs: Sequence[int], ends: int) -> NoReturn:
    """Run the cases in the child process, and write the status of each to the pipe `ends` when it ends."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    for case, output in zip(cases, outputs, strict=True):
        signal.alarm(LIMIT_S)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.clear()
        os.environ.update({"PATH": "/usr/bin:/bin", "HOME": str(folder), **case.environ})
        status = 99
        try:
            status = run(lambda words=case.words: root(words, prog_name="sallyport", standalone_mode=False))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        os.write(ends, bytes([status]))
    os._exit(0)


def main(folder: Path) -> None:
    """Print a JSON object that has the exit status and output of each command in each situation."""
    for module in pkgutil.walk_packages(sallyport.__path__, "sallyport."):
        import_module(module.name)
    folder.chmod(0o755)
    found: dict[str, tuple[int, str]] = {}
    kinds = situations(folder)
    for words, command in leaves():
        if words in (("demo",), ("bench",)):
            continue
        cases = [
            Case(f"{name}: {' '.join(words)}", [*options, *words, *arguments(command, file)], environ)
            for name, (environ, options, file) in kinds.items()
        ]
        found.update(outcomes(cases, folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A program that runs every command as a user without rights and prints the result of each command.

    python -m tests.cli.permissions FOLDER

The program imports everything first, so that a command costs only a fork. Each child process gives up root. The program
makes FOLDER readable.
"""

import json
import os
import pkgutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from socket import AF_UNIX, socket

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


def outcome(words: list[str], environ: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run a command as user `nobody` and return its exit status and output. A negative status is the number of a
    signal.
    """
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT_S)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.environ.clear()
            os.environ.update({"PATH": "/usr/bin:/bin", "HOME": str(folder), **environ})
            os.chdir(folder)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            status = 99
            try:
                status = run(lambda: root(words, prog_name="sallyport", standalone_mode=False))
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, waited = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(waited), output.read().decode(errors="replace")


def main(folder: Path) -> None:
    """Print a JSON object that has the exit status and output of each command in each situation."""
    for module in pkgutil.walk_packages(sallyport.__path__, "sallyport."):
        import_module(module.name)
    folder.chmod(0o755)
    found: dict[str, tuple[int, str]] = {}
    cases = situations(folder)
    for words, command in leaves():
        if words in (("demo",), ("bench",)):
            continue
        for name, (environ, options, file) in cases.items():
            given = [*options, *words, *arguments(command, file)]
            found[f"{name}: {' '.join(words)}"] = outcome(given, environ, folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Run the commands of a documentation page unchanged and in their order, with a service for this page.

    with walked(Walk("docs/guides/rules.md", before=("sallyport user add ...",)), tmp_path) as done:
        assert "Access-Accept" in done.output("sallyport check radius")

The commands of a page are in `console` blocks. A line that starts with `$ ` is a command. If a line ends with a
backslash, the next line continues it. The other lines are the output of the command. In the output, `...` matches any
text and a number matches any number. All commands of a page run in the same bash, so variables and jobs are kept. Only
the texts of `Walk.replace` and the ports of the service are replaced.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.ports import free_port
from tests.running_service import PROGRAM, RunningService, running_service

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```console\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
LIMIT_S = 180
MARK = "@@ end of command"
LISTENS = {
    "SALLYPORT_HTTP_BIND": "127.0.0.1:8080",
    "SALLYPORT_RADIUS_AUTH_BIND": "127.0.0.1:1812",
    "SALLYPORT_RADIUS_ACCT_BIND": "127.0.0.1:1813",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page. shown: the lines of output that the page prints after the command."""

    text: str
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """How the commands of a page are run.

    page: the path of the page from the root of the repository. needs: a program that must be installed. before:
    commands of an earlier page, which are run first in the same shell. serves: whether the page itself starts the
    service. settings: the environment variables of the service and of the commands. replace: maps a text of the page to
    the text that the test uses; `{free}` in both is replaced by a free port. files: files that are copied into the
    directory of the shell, relative to the folder of the page. fails: the first words of commands that end with status
    1 in the test. typed: maps the first words of a command to its input. skip: the first words of blocks that are not
    run.
    """

    page: str
    needs: str = ""
    before: Sequence[str] = ()
    serves: bool = False
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    replace: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: Sequence[str] = ()
    fails: Sequence[str] = ()
    typed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    skip: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The results of the commands. printed: the output of each command that was run. The last of them may have
    failed.
    """

    commands: Sequence[Command]
    printed: Sequence[str]
    statuses: Sequence[int]
    directory: Path
    service: RunningService | None

    def output(self, start: str) -> str:
        """Return the output of the first command that starts with this text."""
        return next(
            text for each, text in zip(self.commands, self.printed, strict=False) if each.text.startswith(start)
        )


def blocks(page: str) -> list[list[Command]]:
    """Return the commands of each block of a page. Raises AssertionError if a block does not start with a command."""
    found: list[list[Command]] = []
    for block in FENCE.finditer((ROOT / page).read_text(encoding="utf-8")):
        lines = [line.removeprefix(block["indent"]) for line in block["text"].splitlines()]
        assert lines[0].startswith("$ "), f"{page}: a console block begins with {lines[0]!r}, not with `$ `"
        found.append([])
        while lines:
            whole = lines.pop(0).removeprefix("$ ")
            while whole.endswith("\\"):
                whole += "\n" + lines.pop(0)
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            found[-1].append(Command(whole, tuple(shown)))
    return found


@contextmanager
def walked(walk: Walk, directory: Path, program: Path = PROGRAM.parent) -> Iterator[Done]:
    """Run the commands of a page until one fails. The service and the jobs of the page run until the block ends.
    program: the folder of the program `sallyport`."""
    shown = [each for block in blocks(walk.page) if not block[0].text.startswith(tuple(walk.skip)) for each in block]
    for name in walk.files:
        (directory / Path(name).name).write_bytes((ROOT / walk.page).parent.joinpath(name).read_bytes())
    free = str(free_port())
    settings, replace = (
        {k: v.replace("{free}", free) for k, v in each.items()} for each in (walk.settings, walk.replace)
    )
    with nullcontext() if walk.serves else running_service(directory, settings) as service:
        environ, ports = _alone(settings) if service is None else (service.environ, _ports(service))
        replace |= ports
        (directory / "sallyport-data").symlink_to(directory / "data") if service else None
        script = [
            _replaced(text, replace) + "\n" for text in ["set -e", *walk.before, f"echo; echo '{MARK} 0'", "set +e"]
        ]
        for each in shown:
            text = _replaced(each.text, replace)
            text += "".join(f" <<< '{words}'" for start, words in walk.typed.items() if each.text.startswith(start))
            script.append(_step(text, _status(walk, each), free))
        output, commands = directory / "output", directory / "script"
        commands.write_text("".join(script))
        with output.open("wb") as both:
            shell = subprocess.Popen(
                ["bash", commands],
                cwd=directory,
                env={**environ, "PATH": f"{program}:{environ['PATH']}"},
                stdin=subprocess.DEVNULL,
                stdout=both,
                stderr=both,
                start_new_session=True,
            )
        try:
            shell.wait(LIMIT_S)
            printed, statuses = _parts(output.read_text(errors="replace"))
            yield Done(shown, printed, statuses, directory, service)
        finally:
            _end(shell)


def problem(walk: Walk, done: Done) -> str:
    """Return the first defect of a run, which is a command with a wrong status or with other output. Return an empty
    text if the page works.
    """
    for each, printed, status in zip(done.commands, done.printed, done.statuses, strict=False):
        if status != _status(walk, each):
            return f"{each.text}\nexit status {status}, not {_status(walk, each)}\n{printed}"
        if missing := differs(each.shown, printed):
            return f"{each.text}\nprinted no line of this form: {missing}\n{printed}"
    if len(done.statuses) < len(done.commands):
        return f"stopped before {done.commands[len(done.statuses)].text}\n{done.printed[-1]}"
    return ""


def differs(shown: Sequence[str], printed: str) -> str:
    """Return the first of the shown lines that does not follow in the output, or an empty text if all do. On a slow
    machine, `check radius` may need a further try.
    """
    lines = iter(re.sub(r"(?m), at try \d+$", "", printed).splitlines())
    for each in shown:
        pattern = re.compile(_pattern(each))
        if not any(pattern.fullmatch(line) for line in lines):
            return each
    return ""


def _pattern(shown: str) -> str:
    parts = (re.escape(part) for part in re.split(r"\s+", shown.strip()))
    whole = re.sub(r"\d+", r"\\d+(?:\\.\\d+)?", r"\s+".join(parts))
    return r"\s*" + whole.replace(r"\.\.\.", ".*") + r"\s*"


def _ports(service: RunningService) -> dict[str, str]:
    ports = service.ports
    return {
        "127.0.0.1:8080": f"127.0.0.1:{ports.http}",
        "127.0.0.1:1812": f"127.0.0.1:{ports.auth}",
        "127.0.0.1:1813": f"127.0.0.1:{ports.acct}",
    }


def _alone(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment of a page that starts the service itself, and the ports of that service."""
    ports = {usual: f"127.0.0.1:{free_port()}" for usual in LISTENS.values()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SALLYPORT_")}
    listens = {name: ports[usual] for name, usual in LISTENS.items()}
    return {**kept, **listens, "SALLYPORT_LOG_FORMAT": "json", **settings}, ports


def _status(walk: Walk, command: Command) -> int:
    return 1 if command.text.startswith(tuple(walk.fails)) else 0


def _replaced(text: str, replace: Mapping[str, str]) -> str:
    for old, new in replace.items():
        text = text.replace(old, new)
    return text


def _step(command: str, status: int, free: str) -> str:
    """Return a command as a part of the script.

    If the command starts a background job at the free port, the script waits until the port accepts connections.
    """
    lines = [command]
    if command.endswith("&") and free in command:
        lines.append(f"until (: < /dev/tcp/127.0.0.1/{free}) 2>/dev/null; do sleep 0.05; done")
    return "\n".join([*lines, f'status=$?; echo; echo "{MARK} $status"; [ $status = {status} ] || exit', ""])


def _parts(output: str) -> tuple[list[str], list[int]]:
    """Return the output and the status of each command. The first part is that of the commands that run before the
    page.
    """
    *parts, rest = re.split(rf"\n?{MARK} (\d+)\n", output)
    return [*parts[2::2], rest], [int(status) for status in parts[3::2]]


def _end(shell: "subprocess.Popen[bytes]") -> None:
    """End the processes of a page. Its shell is the leader of their process group."""
    with suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGTERM)
    shell.wait(10)

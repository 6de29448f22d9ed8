"""The progress bar of `domain mode NAME enforce --require-clean`, on a terminal and in scripts. The control socket
gives fixed answers, so each step of the survey is known.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import trio

from sallyport.areas.domains.cli import BEGINS
from sallyport.service.control import serve_control
from tests.running_service import PROGRAM

COMMAND = ("domain", "mode", "corp", "enforce", "--require-clean")
DONE = "domain corp (1): enforce, fallback deny\n"
CHANGED = {
    "domainName": "corp",
    "domainId": 1,
    "enforcementMode": "enforce",
    "fallbackAction": "deny",
    "revertsAt": None,
    "warnings": [],
    "preview": None,
}


async def run(
    directory: Path, output: int, errors: int, *steps: tuple[int, int], at_check: Callable[[], None] | None = None
) -> int:
    """Run the command with two descriptors for its output, and return the exit status.

    steps: the number of users and the number of users that are still to be looked up, after each look-up. at_check: is
    called when the provider is checked.
    """
    left = list(steps)

    async def answer(asked: Mapping[str, object], _: str) -> bytes:
        if asked["path"] == "/ad/CheckMFAProvider":
            if at_check is not None:
                at_check()
            return b'{"works": true, "problem": null}'
        if asked["path"] == "/ad/CheckEnrolments":
            return json.dumps(dict(zip(("users", "left"), left.pop(0), strict=True))).encode()
        assert asked["path"] == "/ad/updateDomainEnforcement"
        return json.dumps(CHANGED).encode()

    (directory / "lock").touch()
    environ = {"SALLYPORT_DATA_DIR": str(directory), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, directory / "control.sock", answer)
        done = await trio.run_process([PROGRAM, *COMMAND], stdout=output, stderr=errors, env=environ, check=False)
        nursery.cancel_scope.cancel()
    assert not left
    return done.returncode


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Yield the two descriptors of a terminal: the one from which the test reads, and the one to which the command
    writes.
    """
    ends = os.openpty()
    os.set_blocking(ends[0], False)
    yield ends
    for end in ends:
        os.close(end)


async def shown(directory: Path, terminal: tuple[int, int], *steps: tuple[int, int]) -> str:
    """Run the command and return everything that it prints on the terminal."""
    assert await run(directory, terminal[1], terminal[1], *steps) == 0
    return os.read(terminal[0], 65536).decode()


async def test_a_terminal_shows_the_progress(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """After each look-up the bar shows the number of users whose enrolment is known. The final number stays on the
    terminal.
    """
    text = await shown(tmp_path, terminal, (40, 30), (40, 5), (40, 0))
    assert re.findall(r"enrolments +\[(#*)-*\] +(\d+/\d+)", text)[-3:] == [
        ("#" * 9, "10/40"),
        ("#" * 31, "35/40"),
        ("#" * 36, "40/40"),
    ]
    assert "looked up 40 of 40 enrolments\r\n" in text


async def test_a_terminal_shows_the_start(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """The command prints a line before it calls the provider, because the answer may take some seconds."""
    before = list[bytes]()
    errors = terminal[1]
    await run(tmp_path, errors, errors, (0, 0), at_check=lambda: before.append(os.read(terminal[0], 65536)))
    assert before == [f"{BEGINS}\r\n".encode()]


async def test_the_bar_ends_when_the_provider_stops_answering(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """If a look-up gets no answer, the survey stops and shows the number of known enrolments."""
    text = await shown(tmp_path, terminal, (40, 30), (40, 30))
    assert "10/40" in text
    assert "looked up 10 of 40 enrolments\r\n" in text


async def test_no_bar_is_shown_without_users(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """If no login has been recorded, neither a bar nor a number is shown."""
    assert await shown(tmp_path, terminal, (0, 0)) == f"{BEGINS}\n{DONE}".replace("\n", "\r\n")


async def test_no_bar_is_written_to_a_file(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """If standard error is a file, it contains only the number, even if standard output is a terminal."""
    with (tmp_path / "errors").open("w+") as errors:
        assert await run(tmp_path, terminal[1], errors.fileno(), (40, 30), (40, 0)) == 0
        errors.seek(0)
        assert errors.read() == "looked up 40 of 40 enrolments\n" + DONE
    with pytest.raises(BlockingIOError):
        os.read(terminal[0], 1)

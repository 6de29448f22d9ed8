"""The progress bar of `domain mode NAME enforce --require-clean`, at a terminal and in scripts.

The command talks to a control socket whose answers are fixed, so that each step of the survey is known.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trio

from sallyport.listen.control import serve_control
from tests.service import PROGRAM

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


async def run(directory: Path, output: int, errors: int, *steps: tuple[int, int]) -> int:
    """Run the command with two descriptors for its output, and return its exit status.

    steps: (users, users that are left) of each look-up.
    """
    left = list(steps)

    async def answer(asked: Mapping[str, object], _: str) -> bytes:
        if asked["path"] == "/ad/CheckMFAProvider":
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
    """The two ends of a terminal: what the user sees, and what the command writes on."""
    ends = os.openpty()
    os.set_blocking(ends[0], False)
    yield ends
    for end in ends:
        os.close(end)


async def shown(directory: Path, terminal: tuple[int, int], *steps: tuple[int, int]) -> str:
    """Return what a terminal shows that has all output of the command."""
    assert await run(directory, terminal[1], terminal[1], *steps) == 0
    return os.read(terminal[0], 65536).decode()


async def test_a_terminal_shows_the_progress(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """The bar has the users whose enrolment is known after each look-up, and the number at the end stays."""
    text = await shown(tmp_path, terminal, (40, 30), (40, 5), (40, 0))
    assert re.findall(r"enrolments +\[(#*)-*\] +(\d+/\d+)", text)[-3:] == [
        ("#" * 9, "10/40"),
        ("#" * 31, "35/40"),
        ("#" * 36, "40/40"),
    ]
    assert "40 of 40 enrolments are looked up\r\n" in text


async def test_the_bar_ends_where_the_provider_tells_no_more(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """The survey stops after a look-up without an answer, and the number is of those that are known."""
    text = await shown(tmp_path, terminal, (40, 30), (40, 30))
    assert "10/40" in text
    assert "10 of 40 enrolments are looked up\r\n" in text


async def test_without_users_there_is_nothing_to_show(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """Neither a bar nor a number is shown where no login has been recorded."""
    assert await shown(tmp_path, terminal, (0, 0)) == DONE.replace("\n", "\r\n")


async def test_without_a_terminal_there_is_no_bar(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """Standard error in a file has the number alone, also where standard output is a terminal."""
    with (tmp_path / "errors").open("w+") as errors:
        assert await run(tmp_path, terminal[1], errors.fileno(), (40, 30), (40, 0)) == 0
        errors.seek(0)
        assert errors.read() == "40 of 40 enrolments are looked up\n" + DONE
    with pytest.raises(BlockingIOError):
        os.read(terminal[0], 1)

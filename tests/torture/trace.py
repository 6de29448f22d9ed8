"""System calls of the service that strace recorded, sorted by their start."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

_HEX = r"((?:\\x[0-9a-f]{2})*)"
_LINE = re.compile(r"(\d+) +(.*)")
_BEGUN = re.compile(rf"(\w+)\(\d+<{_HEX}>(.*)")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)")
_OCTETS = re.compile(f'"{_HEX}"')
_PORT = re.compile(r"sin_port=htons\((\d+)\)")
_RESULT = re.compile(r"= (-?\d+)(?: \w+ \(.*\))?$")
_UNFINISHED = "<unfinished ...>"


@dataclass(frozen=True, slots=True)
class Call:
    """One system call on a descriptor.

    path: the path of the descriptor. octets: the buffer. port: the peer's port of a datagram, and 0 for other calls.
    began, ended: positions in the order of events. result: the return value of the kernel; it is -1 for an error and
    for a call that never ended.
    """

    name: str
    path: bytes
    octets: bytes
    port: int
    began: int
    ended: int
    result: int


def strace(output: Path, calls: str) -> list[str]:
    """Return the start of a command line that runs a program under strace, with all its threads."""
    watch = ["strace", "-D", "-f", "-q", "-y", "-xx", "-s", "4200", "-e", "signal=none"]
    return [*watch, "-e", f"trace={calls}", "-o", str(output)]


def read_calls(output: Path, process_id: int) -> list[Call]:
    """Return the calls of a process. It must have ended."""
    deadline = time.monotonic() + 20
    while re.search(rf"^{process_id} +\+\+\+ ", text := output.read_text(), re.M) is None:
        assert time.monotonic() < deadline, "strace does not end"
        time.sleep(0.05)
    return sorted(_parse(text.splitlines()), key=lambda call: call.began)


def _parse(lines: list[str]) -> Iterator[Call]:
    running: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        thread, text = found[1], found[2]
        if text.endswith(_UNFINISHED):
            running[thread] = number, text.removesuffix(_UNFINISHED)
        elif resumed := _RESUMED.match(text):
            began, head = running.pop(thread, (number, ""))
            yield from _call(head + resumed[1], began, number)
        else:
            yield from _call(text, number, number)
    for began, head in running.values():
        yield from _call(head, began, len(lines))


def _call(text: str, began: int, ended: int) -> Iterator[Call]:
    found = _BEGUN.fullmatch(text)
    if found is not None:
        name, path, rest = found.groups()
        octets, port, result = _OCTETS.search(rest), _PORT.search(rest), _RESULT.search(rest)
        yield Call(
            name=name,
            path=_octets(path),
            octets=_octets(octets[1]) if octets else b"",
            port=int(port[1]) if port else 0,
            began=began,
            ended=ended,
            result=int(result[1]) if result else -1,
        )


def _octets(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@cache
def _permitted() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(
        ["strace", "-D", "-qq", "-o", "/dev/null", "true"], capture_output=True, timeout=10, check=False
    )
    return tried.returncode == 0


def _may_attach() -> bool:
    """Return whether strace may attach to a running process. Yama may allow this only to root."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return _permitted() and (os.geteuid() == 0 or not scope.exists() or scope.read_text().strip() == "0")


needs_strace = pytest.mark.skipif(not _permitted(), reason="strace is not installed, or may not trace here")
needs_attached_strace = pytest.mark.skipif(not _may_attach(), reason="strace is not installed, or may not attach here")

"""Run a reader in a process of its own, with limits of time and memory and an empty environment, because the file may
be hostile. The file stays where it is; nothing keeps a copy."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from sallyport.areas.migration.translation import Options, Translation
from sallyport.base.errors import Invalid

MODULE: Final = "sallyport.areas.migration.reader"
LAST: Final = 1 << 20
"""Maximum number of octets of the errors of a reader that are read."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """The limits of a reader. cpu_s: the CPU time in seconds. octets: the size of the address space. answer: the octets
    of the result; this process parses them at once."""

    cpu_s: int = 120
    octets: int = 1 << 30
    answer: int = 1 << 28


LIMITS: Final = ReaderLimits()


def translate(form: str, path: Path, options: Options, limits: ReaderLimits = LIMITS) -> Translation:
    """Return what a file of another server says. form: a key of `reader.READERS`. Raises Invalid."""
    return _translated(form, path.absolute(), path.name, options, limits)


def translate_open(
    form: str, file: BinaryIO, name: str, options: Options, limits: ReaderLimits, folder: str = ""
) -> Translation:
    """Return what an open file says, which need not have a place in a folder. name: its name for messages. folder: an
    empty folder for the files of an archive. Raises Invalid."""
    path = Path(f"/proc/self/fd/{file.fileno()}")
    found = _translated(form, path, name, options, limits, (file.fileno(),), folder)
    items = [replace(each, source=_named(each.source, path, name)) for each in found.items]
    return Translation(items, [replace(each, source=_named(each.source, path, name)) for each in found.findings])


def _named(source: str, path: Path, name: str) -> str:
    """Return the place in a file with the name of the file."""
    file, colon, line = source.partition(":")
    return f"{name}{colon}{line}" if file == path.name else source


def _translated(
    form: str,
    path: Path,
    name: str,
    options: Options,
    limits: ReaderLimits,
    descriptors: Sequence[int] = (),
    folder: str = "",
) -> Translation:
    """Run the reader. descriptors: of open files that it reads. folder: see `translate_open`."""
    command = [sys.executable, "-I", "-m", MODULE, form, str(path), str(limits.cpu_s), str(limits.octets), folder]
    with TemporaryFile() as errors, TemporaryFile() as asked:
        asked.write(json.dumps(options.as_json()).encode())
        asked.seek(0)
        with subprocess.Popen(  # noqa: S603  an own module
            command, stdin=asked, stdout=subprocess.PIPE, stderr=errors, env={}, pass_fds=descriptors
        ) as process:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            answer = process.stdout.read(limits.answer + 1)
            if len(answer) > limits.answer:
                process.kill()
        errors.seek(0)
        problem = errors.read(LAST)
    if folder:  # its path is internal
        answer, problem = (each.replace(json.dumps(folder)[1:-1].encode(), b"") for each in (answer, problem))
    if len(answer) > limits.answer:
        raise Invalid(f"{name}: the file describes too much at once: export it in parts, or use `sallyport import`")
    try:
        result = json.loads(answer)
    except ValueError:
        raise Invalid(f"{name}: {_why(process.returncode, problem, limits)}") from None
    if "error" in result:
        raise Invalid(f"{name}: {result['error']}")
    return Translation.parse(result)


def _why(status: int, errors: bytes, limits: ReaderLimits) -> str:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"the file could not be read within {limits.cpu_s} s of CPU time: export it in parts"
    last = errors.decode(errors="replace").strip().rpartition("\n")[2]
    if "MemoryError" in last or not last:
        return "the file needs too much memory: export it in parts"
    return f"the file could not be read: {last[:200]}"

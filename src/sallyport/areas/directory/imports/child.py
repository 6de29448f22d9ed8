"""Start the child process that converts a file of entries to a prepared file (`convert`).

The file may come from a hostile tenant. So the child runs in isolated mode (`python -I`) with an empty environment. It
thus imports nothing from the current directory, and does not inherit the master key. Before the child opens the file,
it limits its own CPU time and memory.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
import trio

from sallyport.areas.directory.imports.convert import parts_of
from sallyport.base.errors import Invalid

MODULE: Final = "sallyport.areas.directory.imports.convert"
_STDERR: Final = 2000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """The limits of a child process. cpu_s: the CPU time in seconds. octets: the size of the address space."""

    cpu_s: int = 900
    octets: int = 1 << 30


LIMITS: Final = ChildLimits()


@dataclass(frozen=True, slots=True)
class PreparedCounts:
    """The number of entries in a prepared file. skipped: how many entries of the source were left out, because they are
    neither people nor groups nor units."""

    total: int
    skipped: int


async def prepare(
    kind: str, source: Path, target: Path, mapped: Collection[str], limits: ChildLimits
) -> PreparedCounts:
    """Convert a file of entries to a prepared file, in a child process.

    kind: `ldif` for an LDIF file, `spool` for a file of entries that were read from a directory. mapped: the attributes
    that mappings use. Raises Invalid if the file has an error or exceeds a limit.
    """
    arguments = [kind, str(source), str(target), ",".join(sorted(mapped)), str(limits.cpu_s), str(limits.octets)]
    try:
        done = await trio.run_process(
            [sys.executable, "-I", "-m", MODULE, *arguments],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={},
        )
    finally:
        for part in parts_of(target):  # a child that was killed leaves these files
            part.unlink(missing_ok=True)
    if done.returncode:
        log.error("import_child_failed", status=done.returncode, error=done.stderr[-_STDERR:].decode(errors="replace"))
        raise Invalid(_why(done.returncode, limits))
    result: dict[str, int | str] = json.loads(done.stdout)
    if "error" in result:
        raise Invalid(str(result["error"]))
    return PreparedCounts(int(result["total"]), int(result["skipped"]))


def _why(status: int, limits: ChildLimits) -> str:
    if status == -signal.SIGXCPU:
        return f"the file was not prepared within {limits.cpu_s} s of CPU time: import it in smaller parts"
    return "the file could not be prepared: see the log of the service"

"""Run a reader in a process of its own, with limits of time and memory and an empty environment, because the file may
be hostile. The file stays where it is; nothing keeps a copy."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.areas.migration.translation import Options, Translation
from sallyport.base.errors import Invalid

MODULE: Final = "sallyport.areas.migration.reader"


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """The limits of a reader. cpu_s: the CPU time in seconds. octets: the size of the address space."""

    cpu_s: int = 120
    octets: int = 1 << 30


LIMITS: Final = ReaderLimits()


def translate(form: str, path: Path, options: Options, limits: ReaderLimits = LIMITS) -> Translation:
    """Return what a file of another server says. form: a key of `reader.READERS`. Raises Invalid."""
    done = subprocess.run(  # noqa: S603  an own module
        [sys.executable, "-I", "-m", MODULE, form, str(path.absolute()), str(limits.cpu_s), str(limits.octets)],
        input=json.dumps(options.as_json()).encode(),
        capture_output=True,
        check=False,
        env={},
    )
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise Invalid(f"{path.name}: {_why(done.returncode, done.stderr, limits)}") from None
    if "error" in result:
        raise Invalid(f"{path.name}: {result['error']}")
    return Translation.parse(result)


def _why(status: int, errors: bytes, limits: ReaderLimits) -> str:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"the file could not be read within {limits.cpu_s} s of CPU time: export it in parts"
    last = errors.decode(errors="replace").strip().rpartition("\n")[2]
    if "MemoryError" in last or not last:
        return "the file needs too much memory: export it in parts"
    return f"the file could not be read: {last[:200]}"

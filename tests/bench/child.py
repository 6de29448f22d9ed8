"""Servers as child processes: finding a free port, waiting until the server answers, and ending it by its process
id.
"""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .settings import BenchmarkError

SECRET = "testing123"


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers RADIUS requests of one kind on 127.0.0.1.

    count_events: returns the number of recorded answers; it is None if the server records nothing. accounting_port: the
    port for accounting, or 0 if the server does not accept accounting.
    """

    name: str
    port: int
    process_id: int
    count_events: Callable[[], int] | None
    accounting_port: int = 0


@contextmanager
def child_process(
    command: Sequence[str], *, directory: Path, output: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a directory until the block ends. Then send it SIGTERM, and SIGKILL ten seconds later.

    output: the file for standard output and standard error. environment: if None, the server gets the environment of
    the caller.
    """
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=directory, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], output: Path, *, seconds: float) -> None:
    """Wait until `ready` returns true. Raises BenchmarkError, with the end of the output, if the server ends or takes
    too long.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            told = output.read_text(errors="replace")[-2000:] if output.exists() else ""
            raise BenchmarkError(f"{process.args!r} did not become ready; exit status {process.poll()}\n{told}")
        time.sleep(0.05)

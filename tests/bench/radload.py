"""The load generator. It is compiled from radload.c at each start, because a fresh clone contains no binaries."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .settings import BenchmarkError

SOURCE = Path(__file__).with_name("radload.c")
COMPILER = ("cc", "-std=c11", "-O2", "-Wall", "-Wextra")
# After its own time limit radload waits for the outstanding requests, three tries of at most ten seconds; then it
# hangs.
GRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """The measurements of radload. Latencies are in milliseconds, memory is in KiB, and the server's processor time is
    in microseconds.
    """

    sent: int
    answered: int
    accepts: int
    rejects: int
    challenges: int
    lost: int
    retransmitted: int
    bad_replies: int
    unsigned_replies: int
    seconds: float
    requests_per_second: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    server_cpu_seconds: float
    server_cpu_us_per_request: float
    rss_before_kib: int
    rss_after_kib: int


def compile_radload(directory: Path) -> Path:
    """Compile the generator into a directory and return the path of the program.

    Raises BenchmarkError with the compiler's output.
    """
    return compile_c(SOURCE.name, directory, "-lcrypto")


def compile_c(source: str, directory: Path, *libraries: str) -> Path:
    """Compile a program of this folder. Raises BenchmarkError with the compiler's output."""
    program = directory / Path(source).stem
    command = [*COMPILER, "-o", str(program), str(SOURCE.with_name(source)), *libraries]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    except FileNotFoundError as error:
        raise BenchmarkError("no C compiler: apt-get install gcc libssl-dev") from error
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"{source} does not compile (libssl-dev installed?)\n{error.stderr}") from error
    return program


def parse_load(line: str) -> Load:
    """Read the line of JSON that radload prints."""
    values = json.loads(line)
    latencies = {f"{name}_ms": value for name, value in values.pop("latency_ms").items()}
    return Load(**values, **latencies)


def run_radload(program: Path, arguments: Sequence[str], *, seconds: float) -> Load:
    """Send load for at most `seconds`, and allow radload one more minute. Raises BenchmarkError if radload does not
    start or does not end.
    """
    command = [str(program), "-T", str(seconds), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + GRACE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError("radload did not end") from error
    if done.returncode not in {0, 1}:  # 1: some requests got no answer, which the figures show
        raise BenchmarkError(done.stderr.strip())
    return parse_load(done.stdout)

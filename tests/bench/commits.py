"""What a commit adds to a login, beside a bare fdatasync on the same disk.

With one login outstanding, each login waits for a commit of its own. The turns alternate with bare writes of as many
octets, each with fdatasync, into a file that keeps its size, as the write-ahead log of the database does. A round has
several turns, because the times of two turns may differ by a fifth on the same machine. Then logins arrive at a fixed
rate for ten minutes, while the bare writes go on beside them. During this time, the log is merged into the database
many times, and the checkpoints must not delay the logins.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from tabulate import tabulate

from .child import SECRET, Running
from .radload import Load, compile_radload, run_radload
from .sallyport import sallyport
from .settings import BenchmarkError, Settings
from .spread import Aim, compared, spread

USERS, DEVICES, RATE, LONG_S = 100, 100, 5_000, 600.0
TURNS = 5
"""Turns of each round with one login outstanding."""
FILE_OCTETS = 4 << 20
PAUSE_S = 0.005
REST_US = 150.0
"""Microseconds of a login that are not the commit."""


def run(settings: Settings) -> str:
    """Measure and return Markdown. Raises BenchmarkError if a login was lost."""
    return measure(settings, LONG_S)


def measure(settings: Settings, long_s: float) -> str:
    """Do the same as `run`. long_s: the seconds of the logins at a fixed rate."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        directory = Path(name)
        program = compile_radload(directory)
        with sallyport(directory, users=USERS) as running:
            logins, bare, octets = list[float](), list[float](), 0
            for _ in range(TURNS * settings.rounds):
                before = _written(running.process_id)
                load = _logins(program, running, settings.seconds / 2, "-w", "1")
                octets = (_written(running.process_id) - before) // load.answered
                logins.append(1000 * load.p50_ms)
                with syncing(directory, octets, pause_s=0) as taken:
                    time.sleep(settings.seconds / 2)
                bare.append(median(taken))
            with syncing(directory, octets, pause_s=PAUSE_S) as taken:
                count = str(int(RATE * long_s))
                load = _logins(program, running, long_s, "-r", str(RATE), "-n", count, "-k", "8")
    return _report(logins, bare, octets, load, taken)


def _logins(program: Path, running: Running, seconds: float, *options: str) -> Load:
    fixed = ["-p", str(running.port), "-S", SECRET, "-u", str(USERS), "-N", str(DEVICES), "-t", "5"]
    load = run_radload(program, [*fixed, "-n", "1000000", *options], seconds=seconds)
    if load.lost or load.accepts != load.sent:
        raise BenchmarkError(f"{load.accepts} of {load.sent} logins were accepted")
    return load


def _written(process_id: int) -> int:
    """Return the octets that a process has written to files."""
    text = Path(f"/proc/{process_id}/io").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("wchar:")))


@contextmanager
def syncing(directory: Path, octets: int, *, pause_s: float) -> Iterator[Sequence[float]]:
    """Write and synchronize in a thread until the block ends. Yield the microseconds of each write with its fdatasync.

    octets: the size of a write. pause_s: the seconds between two writes.
    """
    taken, ended = list[float](), threading.Event()
    descriptor = os.open(directory / "bare", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, bytes(FILE_OCTETS), 0)
    os.fsync(descriptor)

    def work() -> None:
        block, at = os.urandom(octets), 0
        while not ended.is_set():
            began = time.perf_counter()
            os.pwrite(descriptor, block, at)
            os.fdatasync(descriptor)
            taken.append(1e6 * (time.perf_counter() - began))
            at = (at + octets) % (FILE_OCTETS - octets)
            time.sleep(pause_s)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()
        os.close(descriptor)


def _report(logins: Sequence[float], bare: Sequence[float], octets: int, load: Load, taken: Sequence[float]) -> str:
    slowest = quantiles(taken, n=1000)[998] / 1000
    rows = [
        ["one outstanding, p50 µs", spread(logins, ".0f"), spread(bare, ".0f")],
        [f"{RATE:,} a second, p50 ms", f"{load.p50_ms:.2f}", f"{median(taken) / 1000:.2f}"],
        [f"{RATE:,} a second, p99.9 ms", f"{load.p999_ms:.1f}", f"{slowest:.1f}"],
        [f"{RATE:,} a second, longest ms", f"{load.max_ms:.1f}", f"{max(taken) / 1000:.1f}"],
    ]
    headers = ["", "login", f"fdatasync of {octets:,} octets"]
    table = tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", "right", "right"])
    single = [(login - REST_US) / sync for login, sync in zip(logins, bare, strict=True)]
    aims = [
        Aim(f"one outstanding: (login - {REST_US:.0f} µs) / fdatasync", 1.3, single, most=True),
        Aim("p99.9 of the logins - p99.9 of fdatasync, in ms", 10, [load.p999_ms - slowest], ".1f", most=True),
    ]
    told = f"{len(logins)} turns with one login outstanding, then {load.answered:,} logins in {load.seconds:.0f} s."
    return "\n\n".join([told, table, *compared(aims)])

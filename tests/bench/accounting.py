"""Accounting: Sallyport, and FreeRADIUS with rlm_sql_sqlite as its package has it, under the same load in turn.

A session is a Start, an interim record and a Stop. Both servers record before they answer; that each answered record
is in its session is checked after each turn, otherwise the comparison is void. A turn is a closed loop with a window of
outstanding records; the best of the rounds counts.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from .child import SECRET, Running, process_tree
from .freeradius import version
from .freeradius_accounting import accounting_freeradius
from .radius import check_fair
from .radload import Load, compile_radload, run_radload
from .sallyport import sallyport
from .settings import BenchmarkError, Settings

WINDOWS = (32, 256)
RETRANSMIT_S = 5
SETTLE_S = 0.5
SESSIONS = (
    "select (select count(*) from sessions) + (select count(*) from sessions where session_time >= 60) "
    "+ (select count(*) from sessions where stopped is not null), (select count(*) from accounting_records)"
)
THEIRS, OURS = "freeradius-accounting", "sallyport"

Results = dict[tuple[str, int], Load]


@dataclass(frozen=True, slots=True)
class Server:
    """A server to measure: its key on the command line, and how it starts in an empty directory."""

    key: str
    start: Callable[[Path], AbstractContextManager[Running]]


def count_records(database: Path) -> int:
    """How many records are in the sessions, as the peer's are counted. BenchmarkError: other than are kept."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        in_sessions, kept = connection.execute(SESSIONS).fetchone()
    if in_sessions != kept:
        raise BenchmarkError(f"Sallyport kept {kept} records, but its sessions tell of {in_sessions}")
    return int(kept)


@contextmanager
def accounting_sallyport(directory: Path) -> Iterator[Running]:
    """Sallyport's accounting port."""
    with sallyport(directory, users=1) as running:
        database = directory / "data" / "sallyport.db"
        yield Running("Sallyport", running.accounting_port, running.process_id, lambda: count_records(database))


SERVERS = (Server(THEIRS, accounting_freeradius), Server(OURS, accounting_sallyport))


def run(settings: Settings) -> str:
    """Measure all chosen servers; Markdown. BenchmarkError when a server does not start or the comparison is void."""
    chosen = [server for server in SERVERS if not settings.servers or server.key in settings.servers]
    if not chosen:
        raise BenchmarkError(f"no such server; there are {', '.join(server.key for server in SERVERS)}")
    results: Results = {}
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, _started(chosen, Path(name)) as running:
        program = compile_radload(Path(name))
        for number in range(settings.rounds):
            for window in WINDOWS:
                for key, server in running.items():
                    load = _measure(program, server, window, settings, prefix=f"{number}-{window}-")
                    _tell(f"round {number + 1}, window {window}: {server.name}, {load.requests_per_second:.0f}/s")
                    best = results.get((key, window))
                    if best is None or load.requests_per_second > best.requests_per_second:
                        results[key, window] = load
        names = {key: server.name for key, server in running.items()}
    return "\n\n".join([_introduction(settings), _figures(results, names), *_ratios(results)])


@contextmanager
def _started(servers: Sequence[Server], directory: Path) -> Iterator[Mapping[str, Running]]:
    running: dict[str, Running] = {}
    with ExitStack() as stack:
        for server in servers:
            _tell(f"starting {server.key}")
            own = directory / server.key
            own.mkdir()
            running[server.key] = stack.enter_context(server.start(own))
        yield running


def _measure(program: Path, server: Running, window: int, settings: Settings, *, prefix: str) -> Load:
    assert server.count_events is not None
    before = server.count_events()
    arguments = ["-a", "-p", str(server.port), "-S", SECRET, "-w", str(window), "-t", str(RETRANSMIT_S), "-N", "5"]
    arguments += ["-n", str(settings.requests), "-s", prefix]
    for process_id in process_tree(server.process_id):
        arguments += ["-i", str(process_id)]
    load = run_radload(program, arguments, seconds=settings.seconds)
    check_fair(server.name, load, server.count_events() - before)
    time.sleep(SETTLE_S)
    return load


def _introduction(settings: Settings) -> str:
    return (
        f"Start, interim record and Stop of each session against {version()}; best of {settings.rounds} round(s), each "
        f"of at most {settings.seconds:g} s. Both have the session on disk before the answer; Sallyport the record too."
    )


def _figures(results: Results, names: Mapping[str, str]) -> str:
    headers = ["window", "server", "records/s", "p50 ms", "p99 ms", "CPU µs/record", "memory MiB", "lost"]
    rows = [
        [
            window,
            names[key],
            f"{load.requests_per_second:,.0f}",
            f"{load.p50_ms:.2f}",
            f"{load.p99_ms:.2f}",
            f"{load.server_cpu_us_per_request:.1f}",
            f"{load.rss_after_kib / 1024:.0f}",
            load.lost,
        ]
        for (key, window), load in sorted(results.items(), key=lambda item: item[0][1])
    ]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right", "left", *["right"] * 6])


def _ratios(results: Results) -> list[str]:
    """The question that the benchmark is for; none where a server was left out."""
    rows = []
    for window in WINDOWS:
        ours, theirs = results.get((OURS, window)), results.get((THEIRS, window))
        if ours is None or theirs is None:
            return []
        throughput = ours.requests_per_second / theirs.requests_per_second
        economy = theirs.server_cpu_us_per_request / ours.server_cpu_us_per_request
        rows.append([window, f"{throughput:.1f}", f"{economy:.1f}"])
    headers = ["window", "records/s / FreeRADIUS (aim: 10)", "records per CPU second / FreeRADIUS (aim: 10)"]
    return [tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 3)]


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)

"""Logins over RADIUS at Sallyport and at FreeRADIUS with and without recording. They get the same load in turn. All
servers run during the whole benchmark, and a server is idle while another one has its turn. A turn is a closed loop
with a window of outstanding PAP logins, all with the right password, so that an answer is an Access-Accept. A figure is
the median of the rounds, with the lowest and the highest. A ratio compares the turns of the same round.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from sallyport.cli.benchmark.processes import process_tree

from .child import SECRET, Running
from .freeradius import freeradius
from .radiusd import version
from .radload import Load, compile_radload, run_radload
from .sallyport import sallyport
from .settings import BenchmarkError, Settings
from .spread import Aim, compared, spread

USERS = 100
WINDOWS = (32, 256)
RETRANSMIT_S = 5  # the default of many devices; it is long enough that a stalled commit causes no retransmission
SETTLE_S = 0.5  # a server may still write after its last answer; this must end before the turn of another server

Results = Mapping[tuple[str, int], Sequence[Load]]
"""The turns of each server, one in each round. The keys are the key of the server and the window."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server to measure: its key on the command line, and the function that runs it in an empty directory."""

    key: str
    start: Callable[[Path], AbstractContextManager[Running]]


PLAIN, RECORDING, OURS = "freeradius", "freeradius-recording", "sallyport"
SERVERS = (
    Server(PLAIN, lambda directory: freeradius(directory, users=USERS, recording=False)),
    Server(RECORDING, lambda directory: freeradius(directory, users=USERS, recording=True)),
    Server(OURS, lambda directory: sallyport(directory, users=USERS)),
)


def run(settings: Settings) -> str:
    """Measure all chosen servers and return Markdown.

    Raises BenchmarkError if one does not start or the comparison is void.
    """
    results, names = measure(SERVERS, settings)
    return "\n\n".join([_introduction(settings), figures(results, names), *compared(aims(results))])


def measure(
    servers: Sequence[Server], settings: Settings, *options: str, windows: Sequence[int] = WINDOWS
) -> tuple[Results, Mapping[str, str]]:
    """Return the results of the chosen servers, and their names by key.

    options: of radload. windows: the numbers of outstanding logins. BenchmarkError as `run`.
    """
    chosen = [server for server in servers if not settings.servers or server.key in settings.servers]
    if not chosen:
        raise BenchmarkError(f"no such server; there are {', '.join(server.key for server in servers)}")
    results = defaultdict[tuple[str, int], list[Load]](list)
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, started(chosen, Path(name)) as running:
        program = compile_radload(Path(name))
        for number in range(settings.rounds):
            for window in windows:
                for key, server in running.items():
                    load = measure_turn(program, server, window, settings, [*options, "-s", f"{number}-{window}-"])
                    _tell(f"round {number + 1}, window {window}: {server.name}, {load.requests_per_second:.0f}/s")
                    results[key, window].append(load)
        return results, {key: server.name for key, server in running.items()}


@contextmanager
def started(servers: Sequence[Server], directory: Path) -> Iterator[Mapping[str, Running]]:
    """Run servers, each in a directory of its own, until the block ends. Yield them by key."""
    running: dict[str, Running] = {}
    with ExitStack() as stack:
        for server in servers:
            _tell(f"starting {server.key}")
            own = directory / server.key
            own.mkdir()
            running[server.key] = stack.enter_context(server.start(own))
        yield running


def measure_turn(
    program: Path, server: Running, window: int, settings: Settings, options: Sequence[str], *, users: int = USERS
) -> Load:
    """Measure one turn of a server. options: further options of radload. Raises BenchmarkError if the result is
    void."""
    before = server.count_events() if server.count_events else 0
    arguments = ["-p", str(server.port), "-S", SECRET, "-u", str(users), "-w", str(window), "-t", str(RETRANSMIT_S)]
    arguments += ["-n", str(settings.requests), *options]
    for process_id in process_tree(server.process_id):
        arguments += ["-i", str(process_id)]
    load = run_radload(program, arguments, seconds=settings.seconds)
    check_fair(server.name, load, server.count_events() - before if server.count_events else None)
    time.sleep(SETTLE_S)
    return load


def check_fair(name: str, load: Load, recorded: int | None) -> None:
    """Check that the answers are authentic accepts and that each is recorded. Raises BenchmarkError if the comparison
    is void.

    recorded: the number of events that the server stored during the load, or None if it stores no events. The events
    may include requests whose answer was lost.
    """
    if load.answered == 0 or load.bad_replies:
        raise BenchmarkError(f"{name}: {load.answered} answers, {load.bad_replies} not authentic")
    if load.accepts != load.answered:
        raise BenchmarkError(f"{name}: only {load.accepts} of {load.answered} answers accept")
    if recorded is not None and not load.answered <= recorded <= load.answered + load.lost:
        raise BenchmarkError(f"{name}: {recorded} events recorded for {load.answered} answers; the comparison is void")


def _introduction(settings: Settings) -> str:
    return (
        f"PAP logins with Message-Authenticator against {version()}; {settings.rounds} round(s), each of at most "
        f"{settings.seconds:g} s. Recording: one device upsert and one event a login, on disk before the answer."
    )


def figures(results: Results, names: Mapping[str, str]) -> str:
    """Return the table of the measurements."""
    headers = ["window", "server", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "memory MiB", "lost"]
    rows = [
        [
            window,
            names[key],
            spread([load.requests_per_second for load in loads], ",.0f"),
            spread([load.p50_ms for load in loads], ".2f"),
            spread([load.p99_ms for load in loads], ".2f"),
            spread([load.server_cpu_us_per_request for load in loads], ".1f"),
            f"{max(load.rss_after_kib for load in loads) / 1024:.0f}",
            sum(load.lost for load in loads),
        ]
        for (key, window), loads in sorted(results.items(), key=lambda item: item[0][1])
    ]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right", "left", *["right"] * 6])


def aims(results: Results) -> list[Aim]:
    """Return the ratios to both FreeRADIUS servers, or an empty list if a server was left out."""
    found = []
    for window in WINDOWS:
        found += [
            Aim(
                f"throughput / FreeRADIUS recording, {window} outstanding", 20, rates(results, RECORDING, window), ".1f"
            ),
            Aim(f"requests per CPU second / FreeRADIUS, {window} outstanding", 0.75, economies(results, PLAIN, window)),
        ]
    return [each for each in found if each.values]


def rates(results: Results, other: str, window: int, ours: str = OURS) -> list[float]:
    """Return the requests per second of our server, divided by those of another one, in each round."""
    return [mine.requests_per_second / its.requests_per_second for mine, its in _rounds(results, other, window, ours)]


def economies(results: Results, other: str, window: int) -> list[float]:
    """Return the requests per CPU second of our server, divided by those of another one, in each round."""
    pairs = _rounds(results, other, window, OURS)
    return [its.server_cpu_us_per_request / mine.server_cpu_us_per_request for mine, its in pairs]


def _rounds(results: Results, other: str, window: int, ours: str) -> Iterator[tuple[Load, Load]]:
    return zip(results.get((ours, window), ()), results.get((other, window), ()), strict=False)


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)

"""Logins over RADIUS at Sallyport and at FreeRADIUS with and without recording. They get the same load in turn. All
servers run during the whole benchmark, and a server is idle while another one has its turn. A turn is a closed loop
with a window of outstanding PAP logins, all with the right password, so that an answer is an Access-Accept. The best of
the rounds counts, because other work on the machine can only make a round slower.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from .child import SECRET, Running, process_tree
from .freeradius import freeradius
from .radiusd import version
from .radload import Load, compile_radload, run_radload
from .sallyport import sallyport
from .settings import BenchmarkError, Settings

USERS = 100
WINDOWS = (32, 256)
RETRANSMIT_S = 5  # the default of many devices; it is long enough that a stalled commit causes no retransmission
SETTLE_S = 0.5  # a server may still write after its last answer; this must end before the turn of another server

Results = dict[tuple[str, int], Load]  # the keys are the key of the server and the window


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
    return "\n\n".join([_introduction(settings), figures(results, names), *ratios(results)])


def measure(
    servers: Sequence[Server], settings: Settings, *options: str, windows: Sequence[int] = WINDOWS
) -> tuple[Results, Mapping[str, str]]:
    """Return the results of the chosen servers, and their names by key.

    options: of radload. windows: the numbers of outstanding logins. BenchmarkError as `run`.
    """
    chosen = [server for server in servers if not settings.servers or server.key in settings.servers]
    if not chosen:
        raise BenchmarkError(f"no such server; there are {', '.join(server.key for server in servers)}")
    results: Results = {}
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, started(chosen, Path(name)) as running:
        program = compile_radload(Path(name))
        for number in range(settings.rounds):
            for window in windows:
                for key, server in running.items():
                    load = measure_turn(program, server, window, settings, [*options, "-s", f"{number}-{window}-"])
                    _tell(f"round {number + 1}, window {window}: {server.name}, {load.requests_per_second:.0f}/s")
                    results[key, window] = _better(results.get((key, window)), load)
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


def _better(best: Load | None, load: Load) -> Load:
    return load if best is None or load.requests_per_second > best.requests_per_second else best


def _introduction(settings: Settings) -> str:
    return (
        f"PAP logins with Message-Authenticator against {version()}; best of {settings.rounds} round(s), each of at "
        f"most {settings.seconds:g} s. Recording: one device upsert and one event a login, on disk before the answer."
    )


def figures(results: Results, names: Mapping[str, str]) -> str:
    """Return the table of the measurements."""
    headers = ["window", "server", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "memory MiB", "lost"]
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


def ratios(results: Results) -> list[str]:
    """Return the two ratios of interest, or an empty list if a server was left out."""
    headers = ["window", "throughput / FreeRADIUS recording (aim: 10)", "requests per CPU second / FreeRADIUS (aim: 1)"]
    rows = []
    for window in WINDOWS:
        ours, plain, recording = (results.get((key, window)) for key in (OURS, PLAIN, RECORDING))
        if ours is None or plain is None or recording is None:
            return []
        throughput = ours.requests_per_second / recording.requests_per_second
        economy = plain.server_cpu_us_per_request / ours.server_cpu_us_per_request
        rows.append([window, f"{throughput:.1f}", f"{economy:.2f}"])
    return [tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 3)]


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)

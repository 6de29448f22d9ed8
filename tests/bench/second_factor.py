"""Logins that wait for the approval of their users, at Sallyport with the provider `webhook` and at FreeRADIUS with
rlm_rest. The two run in turn. The provider answers five seconds after a request. A thousand logins wait for it. Each
one is of another user and station, so that no login joins another one. If a thousand logins wait for five seconds each,
there can be at most 200 answers a second. In the pattern `spread`, 200 logins arrive each second, as in normal use. In
the pattern `at once`, a thousand arrive in a millisecond, and then a new one after each answer, as after a power cut.
Meanwhile another process sends plain password logins at a fixed rate and measures their latency. A login rule (in
FreeRADIUS a condition) exempts the users of these logins from the second factor. A login must be answered within 30 s
and is sent once: retransmissions are not measured. Sallyport is measured with a hook that is polled each second, the
default interval, and with one that answers after the user's approval. FreeRADIUS has the second kind only.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from sallyport.cli.benchmark.processes import process_tree
from tests.running_service import running_service

from .child import SECRET, Running, child_process, wait_until
from .freeradius import asking_freeradius
from .radiusd import THREADS, version
from .radload import Load, compile_c, compile_radload, run_radload
from .settings import BenchmarkError, Settings

ANSWER_S = 5.0
WINDOW = 1000
LOGINS = 3000
PATIENCE_S = 30.0
PLAIN_USERS = 100  # user0 to user99
PLAIN_RATE = 200
PLAIN_S = 12.0
MANY_THREADS = 1024
PATTERNS = {"spread": ("-r", str(int(WINDOW / ANSWER_S))), "at once": ("-w", str(WINDOW))}
HOOK_SECRET = "between-hook-and-service"
ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}


@dataclass(frozen=True, slots=True)
class Server:
    """A server to measure: the function that starts it in an empty directory, with the URL of a provider and a number
    of users.
    """

    key: str
    path: str
    start: Callable[[Path, str, int], AbstractContextManager[Running]]


@dataclass(frozen=True, slots=True)
class Turn:
    """The measurements of a server: logins with a second factor, and the plain logins that are sent meanwhile."""

    pattern: str
    asked: Load
    plain: Load

    @property
    def rate(self) -> float:
        """Return the answers a second. If logins arrive spread, the wait of the last one is not counted."""
        seconds = self.asked.seconds - (ANSWER_S if self.pattern == "spread" else 0.0)
        return self.asked.answered / seconds if self.asked.answered else 0.0


def run(settings: Settings) -> str:
    """Measure all chosen servers and return Markdown.

    Raises BenchmarkError if one does not start or the comparison is void.
    """
    chosen = [server for server in SERVERS if not settings.servers or server.key in settings.servers]
    if not chosen:
        raise BenchmarkError(f"no such server; there are {', '.join(server.key for server in SERVERS)}")
    logins = min(LOGINS, settings.requests)
    rows: list[tuple[str, Turn]] = []
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, provider(Path(name), ANSWER_S) as url:
        program = compile_radload(Path(name))
        for server in chosen:
            own = Path(name) / server.key
            own.mkdir()
            print(f"starting {server.key}", file=sys.stderr, flush=True)
            with server.start(own, url + server.path, PLAIN_USERS + logins) as running:
                for pattern in PATTERNS:
                    before = running.count_events() if running.count_events else 0
                    turn = _measure(program, running, logins, pattern)
                    check_fair(running, turn, before)
                    rows.append((running.name, turn))
                    print(f"{running.name}, {pattern}: {turn.rate:.0f}/s", file=sys.stderr, flush=True)
    return "\n\n".join([_introduction(), _figures(rows)])


# --- measurement --------------------------------------------------------------------------------------------------


def _measure(program: Path, server: Running, logins: int, pattern: str) -> Turn:
    common = ["-p", str(server.port), "-S", SECRET, "-R", "1", "-t", str(PATIENCE_S)]
    asked = [*common, "-f", str(PLAIN_USERS), "-u", str(logins), "-n", str(logins), *PATTERNS[pattern]]
    for process_id in process_tree(server.process_id):
        asked += ["-i", str(process_id)]
    plain = [
        *common,
        "-u",
        str(PLAIN_USERS),
        "-n",
        str(int(PLAIN_RATE * PLAIN_S)),
        "-r",
        str(PLAIN_RATE),
        "-s",
        "plain",
    ]
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_radload, program, plain, seconds=PLAIN_S + 1)
        return Turn(pattern, run_radload(program, asked, seconds=PATIENCE_S), beside.result())


def check_fair(server: Running, turn: Turn, before: int) -> None:
    """Check that the answers are authentic accepts, and that none was sent before its user had approved.

    Raises BenchmarkError if the turn is void. before: the number of events before the turn.
    """
    for load in (turn.asked, turn.plain):
        if load.bad_replies or load.accepts != load.answered:
            raise BenchmarkError(f"{server.name}: {load.answered} answers, {load.accepts} accept, "
                                 f"{load.bad_replies} not authentic")  # fmt: skip
    if turn.asked.answered and turn.asked.p50_ms < ANSWER_S * 1000:
        raise BenchmarkError(f"{server.name}: lets in before the user has approved; the comparison is void")
    if server.count_events is not None and server.count_events() - before < turn.asked.answered + turn.plain.answered:
        raise BenchmarkError(f"{server.name}: fewer events than answers; the comparison is void")


# --- servers -----------------------------------------------------------------------------------------------------


@contextmanager
def provider(directory: Path, answer_s: float) -> Iterator[str]:
    """Run a provider whose users approve after `answer_s` seconds. Yield its URL without a path."""
    program, output = compile_c("provider.c", directory), directory / "provider.output"
    with child_process([str(program), str(answer_s * 1000)], directory=directory, output=output) as process:
        wait_until(lambda: output.read_text().endswith("\n"), process, output, seconds=10)
        yield f"http://127.0.0.1:{int(output.read_text())}/"


@contextmanager
def sallyport(name: str, directory: Path, url: str, users: int) -> Iterator[Running]:
    """Run Sallyport with a domain in enforce mode."""
    with running_service(directory, fresh=True) as service:
        service.add_client("bench", "127.0.0.1", SECRET)

        def add(number: int) -> None:
            service.add_user(f"user{number}", f"pass{number}")

        with ThreadPoolExecutor(16) as pool:  # many writes share a transaction
            list(pool.map(add, range(users)))
        exempt = [f"user{number}" for number in range(PLAIN_USERS)]
        service.post("/ad/AddLoginRule", {**ONE, "name": "plain", "action": "allow", "users": exempt})
        service.post("/ad/SetMFAProvider", {**ONE, "provider": "webhook", "url": url, "secret": HOOK_SECRET})
        service.set_mode("default", "enforce")
        yield Running(
            name=name,
            port=service.ports.auth,
            process_id=service.process_id,
            count_events=lambda: int(service.rows("select count(*) from events")[0][0]),
        )


def _freeradius(threads: int, directory: Path, url: str, users: int) -> AbstractContextManager[Running]:
    return asking_freeradius(directory, url, users=users, threads=threads)


SERVERS = (
    Server("freeradius", "rest", partial(_freeradius, THREADS)),
    Server("freeradius-many", "rest", partial(_freeradius, MANY_THREADS)),
    Server("sallyport", "polled", partial(sallyport, "Sallyport, asks each second")),
    Server("sallyport-held", "held", partial(sallyport, "Sallyport, answer held back")),
)


# --- output ------------------------------------------------------------------------------------------------------


def _introduction() -> str:
    return (
        f"{WINDOW:,} logins at a time wait for a provider that answers after {ANSWER_S:g} s, and {PLAIN_RATE} plain "
        f"logins a second come beside them for {PLAIN_S:g} s; {version()} asks by rlm_rest and records nothing. A "
        f"login has {PATIENCE_S:g} s. Aims: all answered, 150 answers/s, plain p99 under 20 ms."
    )


def _figures(rows: list[tuple[str, Turn]]) -> str:
    headers = ["server", "logins come", "logins", "answered", "seconds", "answers/s", "p99 s", "plain answered",
               "plain p50 ms", "plain p99 ms", "CPU s", "memory MiB"]  # fmt: skip
    body = [
        [
            name,
            turn.pattern,
            f"{turn.asked.sent:,}",
            f"{turn.asked.answered:,}",
            f"{turn.asked.seconds:.1f}",
            f"{turn.rate:.0f}",
            f"{turn.asked.p99_ms / 1000:.2f}",
            f"{turn.plain.answered:,} of {turn.plain.sent:,}",
            _percentile(turn.plain, 0.5, turn.plain.p50_ms),
            _percentile(turn.plain, 0.99, turn.plain.p99_ms),
            f"{turn.asked.server_cpu_seconds:.1f}",
            f"{turn.asked.rss_after_kib / 1024:.0f}",
        ]
        for name, turn in rows
    ]
    return tabulate(body, headers, tablefmt="github", disable_numparse=True, colalign=["left", "left", *["right"] * 10])


def _percentile(load: Load, share: float, answered_ms: float) -> str:
    """Return a percentile of the latencies of all logins that were sent.

    An unanswered login counts with the longest time. radload itself counts only answered logins.
    """
    return f"{answered_ms:.2f}" if load.answered >= share * load.sent else "no answer"

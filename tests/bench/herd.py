"""Ten thousand people whose VPN comes back at once: their logins arrive within five seconds, and each needs a second
factor.

The hook answers each request after nine seconds, or it answers 202 at once and is polled. The service makes at most
2,048 calls at a time, so that the last logins wait for their turn. Meanwhile plain password logins arrive at a fixed
rate. A login must be answered within 60 s.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from sallyport.cli.benchmark.processes import process_tree

from .child import SECRET, Running
from .radload import Load, compile_radload, run_radload
from .second_factor import PLAIN_USERS, provider, sallyport
from .settings import BenchmarkError, Settings
from .spread import Aim, compared

ARRIVE_S = 5.0
ANSWER_S = 9.0
PATIENCE_S = 60.0
PLAIN_RATE = 200
HERDS = (("held", "answers after 9 s", 10_000), ("polled", "answers 202, approves after 9 s", 20_000))


def run(settings: Settings) -> str:
    """Measure both herds and return Markdown. Raises BenchmarkError if the measurement is void."""
    rows, aims = [], list[Aim]()
    for path, hook, count in HERDS:
        logins = min(count, settings.requests)
        with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, provider(Path(name), ANSWER_S) as url:
            directory = Path(name) / "service"
            directory.mkdir()
            print(f"adding {logins} users", file=sys.stderr, flush=True)
            with sallyport("Sallyport", directory, url + path, PLAIN_USERS + logins) as running:
                herd, plain = _measure(compile_radload(Path(name)), running, logins)
        if herd.bad_replies or herd.accepts != herd.answered:
            raise BenchmarkError(f"{herd.answered} answers, {herd.accepts} accept, {herd.bad_replies} not authentic")
        rows.append(_row(hook, herd, plain))
        aims += [
            Aim(f"{hook}: accepted / logins", 1, [herd.accepts / logins], ".4f"),
            Aim(f"{hook}: plain p99 ms", 50, [plain.p99_ms], ".1f", most=True),
        ]
        if path == "held":  # the aim for the memory is of 10,000 logins
            aims.append(Aim(f"{hook}: memory MiB", 400, [herd.rss_after_kib / 1024], ".0f", most=True))
    headers = ("hook", "logins", "accepted", "seconds", "plain p50 ms", "plain p99 ms", "CPU s", "memory MiB")
    return "\n\n".join([tabulate(rows, headers, tablefmt="github", disable_numparse=True), *compared(aims)])


def _measure(program: Path, server: Running, logins: int) -> tuple[Load, Load]:
    common = ["-p", str(server.port), "-S", SECRET, "-R", "1", "-t", str(PATIENCE_S)]
    herd = [*common, "-f", str(PLAIN_USERS), "-u", str(logins), "-n", str(logins), "-r", str(int(logins / ARRIVE_S))]
    herd += ["-k", str(logins // 256 + 4)]
    for process_id in process_tree(server.process_id):
        herd += ["-i", str(process_id)]
    plain = [*common, "-u", str(PLAIN_USERS), "-n", str(int(PLAIN_RATE * PATIENCE_S)), "-r", str(PLAIN_RATE)]
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_radload, program, [*plain, "-s", "plain"], seconds=PATIENCE_S)
        return run_radload(program, herd, seconds=PATIENCE_S), beside.result()


def _row(hook: str, herd: Load, plain: Load) -> list[str]:
    return [
        hook,
        f"{herd.sent:,}",
        f"{herd.accepts:,}",
        f"{herd.seconds:.1f}",
        f"{plain.p50_ms:.1f}",
        f"{plain.p99_ms:.1f}",
        f"{herd.server_cpu_seconds:.1f}",
        f"{herd.rss_after_kib / 1024:.0f}",
    ]

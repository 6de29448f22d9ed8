"""A short comparison of this checkout with the commit before: a guard against regressions that takes three minutes.

Both versions run during the whole comparison and get the same load in turns, so that other work on the machine slows
down both. If the checkout has uncommitted changes, it is compared with its own commit.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from .child import Running
from .radius import Server, measure_turn, started
from .radload import Load, compile_radload
from .sallyport import RULES, sallyport
from .settings import BenchmarkError, Settings

ROOT = Path(__file__).parents[2]
USERS = 20
SECONDS, PAIRS = 3.0, 4
SLOWER, ALWAYS = 1.1, 1.03
"""A load is slower if its CPU time for each request is at least SLOWER times that of the commit before in the median
of the pairs, and at least ALWAYS times in each pair."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of load. options: of radload. window: the number of outstanding requests."""

    name: str
    window: int
    options: tuple[str, ...] = ()


KINDS = (
    Kind("logins", 32),
    Kind("logins", 256),
    Kind("logins of 1,000 devices", 64, ("-N", "1000", "-k", "32")),
    Kind("accounting", 32, ("-a", "-N", "5")),
)

WITH_RULES = Kind(f"logins with {RULES} rules, beside none", 32)
"""Logins in a domain with rules about requests, compared with logins of the same checkout in a domain without rules."""


def run(settings: Settings) -> str:
    """Measure all kinds of load and return Markdown. Raises BenchmarkError if one of them has become slower."""
    base = _git("rev-parse", "--short", "HEAD" if _git("status", "--porcelain") else "HEAD~1")
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name, _checkout(base, Path(name)) as tree:
        with_rules = _server("rules", "this checkout with rules", ROOT, has_rules=True)
        servers = (_server("before", base, tree), _server("now", "this checkout", ROOT), with_rules)
        program = compile_radload(Path(name))
        with started(servers, Path(name)) as running:
            pairs = {kind: _pairs(program, running["before"], running["now"], kind, settings) for kind in KINDS}
            pairs[WITH_RULES] = _pairs(program, running["now"], running["rules"], WITH_RULES, settings)
    table = _table(base, pairs)
    if slower := [f"{kind.name}, window {kind.window}" for kind in pairs if is_slower(pairs[kind])]:
        raise BenchmarkError(f"slower than {base}: {'; '.join(slower)}\n\n{table}")
    return table


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def _checkout(base: str, directory: Path) -> Iterator[Path]:
    """Check out a commit beside the repository until the block ends."""
    tree = directory / "before-tree"
    _git("worktree", "add", "--detach", str(tree), base)
    try:
        yield tree
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _server(key: str, name: str, tree: Path, *, has_rules: bool = False) -> Server:
    """Return the server whose code is in a tree. Raises BenchmarkError if Python would import other code."""
    path = {"PYTHONPATH": str(tree / "src")}
    shown = [sys.executable, "-c", "import sallyport; print(sallyport.__file__)"]
    found = subprocess.run(shown, env=os.environ | path, capture_output=True, text=True, check=True).stdout
    if not Path(found).is_relative_to(tree):
        raise BenchmarkError(f"Python imports {found.strip()}, not the code in {tree}")
    return Server(
        key, lambda directory: sallyport(directory, users=USERS, name=name, settings=path, has_rules=has_rules)
    )


def _pairs(program: Path, before: Running, now: Running, kind: Kind, settings: Settings) -> list[tuple[Load, Load]]:
    """Measure both servers in turns. Each of them is the first one in half of the pairs."""
    if "-a" in kind.options:
        before, now = (replace(each, port=each.accounting_port, count_events=None) for each in (before, now))
    settings = replace(settings, seconds=SECONDS)
    pairs = []
    for number in range(PAIRS):
        loads = {}
        for server in (before, now) if number % 2 else (now, before):
            options = [*kind.options, "-s", f"{kind.window}-{len(kind.options)}-{number}-"]
            loads[server.name] = measure_turn(program, server, kind.window, settings, options, users=USERS)
        pairs.append((loads[before.name], loads[now.name]))
    return pairs


def is_slower(pairs: Sequence[tuple[Load, Load]]) -> bool:
    """Return whether the second load of the pairs is slower than the first."""
    ratios = _ratios(pairs)
    return statistics.median(ratios) >= SLOWER and min(ratios) >= ALWAYS


def _ratios(pairs: Sequence[tuple[Load, Load]]) -> list[float]:
    """Return the CPU time for each request, relative to the commit before, in each pair."""
    return [now.server_cpu_us_per_request / before.server_cpu_us_per_request for before, now in pairs]


def _table(base: str, measured: dict[Kind, list[tuple[Load, Load]]]) -> str:
    rows = []
    for kind, pairs in measured.items():
        ratios = _ratios(pairs)
        rates = [statistics.median(load.requests_per_second for load in loads) for loads in zip(*pairs, strict=True)]
        cpu = [
            statistics.median(load.server_cpu_us_per_request for load in loads) for loads in zip(*pairs, strict=True)
        ]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append([kind.name, kind.window, *(f"{rate:,.0f}" for rate in rates), *(f"{us:.1f}" for us in cpu), spread])
    headers = ["load", "window", f"{base} /s", "now /s", f"{base} CPU µs", "now CPU µs", "CPU ratio (spread)"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)

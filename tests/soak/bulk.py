"""Logins and accounting in bulk, by the load generator of the benchmarks."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench.radload import parse_load
from tests.soak.history import DECISIONS, Bulk
from tests.soak.nas import Turn
from tests.soak.site import RIGHT, SECRET, WRONG

WINDOW: Final = 256
IN_A_ROW: Final = 1024
"""Records of one kind that follow one another: as in radload.c."""
STATUSES: Final = (1, 3, 2)
KINDS: Final = ("right", "wrong", "accounting")
MOST: Final = 1 << 16
"""The largest number of requests of a run. A round has room for 16 runs of each kind."""


def first_station(number: int, run: int) -> int:
    """Return the number of the first station of a run in a round. It is below 2**30."""
    return (number << 20) + (run << 16)


def station(number: int) -> str:
    """Return the address of a station as radload writes it."""
    return "02-00-" + "-".join(f"{number >> shift & 255:02X}" for shift in (24, 16, 8, 0))


def session(prefix: str, index: int) -> tuple[str, int]:
    """Return the session and the status of an accounting record of radload."""
    return f"{prefix}{index // (3 * IN_A_ROW) * IN_A_ROW + index % IN_A_ROW:08X}", STATUSES[index // IN_A_ROW % 3]


def run_bulk(turn: Turn, program: Path, node: int, seconds: float) -> None:
    """Send requests of each kind in turn to a node until the round is over."""
    random = turn.random(f"bulk{node}")
    run = random.randrange(3)
    for number in range(16):
        if turn.over.is_set():
            return
        kind = KINDS[(run + number) % 3]
        turn.site.history.add(_run(turn, program, node, kind, number, random.uniform(2, seconds / 2)))


def _run(turn: Turn, program: Path, node: int, kind: str, number: int, seconds: float) -> Bulk:
    ports = turn.site.relay.ports[node]
    first = first_station(2 * turn.round.number + node, number)
    prefix = f"{turn.round.number}-{node}-{number}-"
    log = turn.directory / f"bulk-{node}-{number}"
    is_accounting, is_right = kind == "accounting", kind == "right"
    command = [
        program, "-S", SECRET, "-p", ports.acct if is_accounting else ports.auth, "-n", MOST, "-w", WINDOW,
        "-T", seconds,
        "-t", 1, "-R", 300, "-N", 20, "-s", prefix, "-l", log, "-u", WRONG if kind == "wrong" else RIGHT,
        "-f", RIGHT if kind == "wrong" else 0,
        *(("-a",) if is_accounting else ("-m", "-o", first, "-b", 0 if is_right else 100)),
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=seconds + 400, check=False)
    load = parse_load(done.stdout)
    right = {"right": "accept", "wrong": "reject", "accounting": "stored"}[kind]
    bulk = Bulk(kind, right, load.sent, load.lost, load.bad_replies)
    for index, code in _lines(log):
        key = "/".join(map(str, session(prefix, index))) if is_accounting else station(first + index)
        bulk.answers[key] = DECISIONS.get(code, f"code {code}")
    log.unlink()
    return bulk


def _lines(log: Path) -> Iterator[tuple[int, int]]:
    """Yield the index and the code of each answer."""
    with log.open() as file:
        for line in file:
            index, code, _ = line.split("\t", 2)
            yield int(index), int(code)

"""Logins and accounting in bulk, by the load generator of the benchmarks."""

import subprocess
from pathlib import Path
from typing import Final

from tests.bench.radload import parse_load
from tests.soak.history import DECISIONS, Answered, Bulk
from tests.soak.nas import Turn
from tests.soak.site import RIGHT, SECRET, WRONG

WINDOW: Final = 256
SOCKETS: Final = 32
"""So many that an identifier is used again only when the copies of the former request have arrived: a late copy would
be another request."""
KINDS: Final = ("right", "wrong", "accounting")
MOST: Final = 1 << 16
"""The largest number of requests of a run. A round has room for 16 runs of each kind."""


def station(number: int) -> str:
    """Return the address of a station as radload writes it. number: below 2**32."""
    return "02-00-" + "-".join(f"{number >> shift & 255:02X}" for shift in (24, 16, 8, 0))


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
    first = (2 * turn.round.number + node << 20) + (number << 16)
    log = turn.directory / f"bulk-{node}-{number}"
    is_accounting, is_right = kind == "accounting", kind == "right"
    command = [
        program, "-S", SECRET, "-p", ports.acct if is_accounting else ports.auth, "-n", MOST, "-w", WINDOW,
        "-T", seconds, "-k", SOCKETS, "-t", 1, "-R", 300, "-N", 20, "-l", log,
        "-s", f"{turn.round.number}-{node}-{number}-",
        "-u", WRONG if kind == "wrong" else RIGHT, "-f", RIGHT if kind == "wrong" else 0,
        *(("-a",) if is_accounting else ("-m", "-o", first, "-b", 0 if is_right else 100)),
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=seconds + 400, check=False)
    load = parse_load(done.stdout)
    right = {"right": "accept", "wrong": "reject", "accounting": "stored"}[kind]
    bulk = Bulk(kind, right, 0 if is_accounting else node, load.sent, load.lost, load.bad_replies)
    with log.open() as file:
        for line in file:
            _, code, user, session, status, place, began, latency, _ = line.split("\t")
            key = f"{session}/{status}" if is_accounting else station(int(place))
            decision = DECISIONS.get(int(code), f"code {code}")
            bulk.answers[key] = Answered(decision, user, float(began), float(latency))
    log.unlink()
    return bulk

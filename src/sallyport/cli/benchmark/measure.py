"""The kinds of load, one after the other, and what the service did meanwhile."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from sallyport.cli.benchmark.lists import post, read_lists
from sallyport.cli.benchmark.processes import cpu_s, machine_busy_s, usable_cores
from sallyport.cli.benchmark.service import SCOPE, Target
from sallyport.cli.benchmark.supplicant import PeapLogins
from sallyport.cli.benchmark.traffic import AccountingRecords, Dialogue, PapLogins, Traffic, drive

WINDOW: Final = 32
"""Outstanding requests of each process of the load generator."""
CONNECTIONS: Final = 8
MOST_PROCESSES: Final = 8
BUSY: Final = 0.85
"""Share of a core from which the load generator may be the limit of a rate."""
WARM_UP: Final = 0.05
"""Share of the time in which the devices register at their first login, before the first kind of load."""
LIST_DEVICES: Final = "/network_device/ListDevices"
PAGE: Final = 10
FEW: Final = 100
"""Number of units below which no percentile is shown: p99 would be the slowest of a handful."""

Sender = Callable[[Target, float, int], Traffic]
"""Sends load from one process: gets the service, the seconds, and the number of the process from 0."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The results of one kind of load. rate: units a second, such as logins. p50_ms, p99_ms: of a unit, in
    milliseconds; p99_ms is None if there were fewer than FEW units. cpu_ms: the service's processor time for a unit.
    database_ms: that of a database server on this machine. generator: the busy share of the busiest process of the load
    generator. others: the cores that other programs used meanwhile."""

    rate: float
    p50_ms: float
    p99_ms: float | None
    cpu_ms: float
    database_ms: float
    repeated: int
    generator: float
    others: float

    @property
    def is_at_least(self) -> bool:
        """Return whether the rate is a lower limit, because the load generator had no processor time left."""
        return self.generator >= BUSY


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of load. share: its part of the whole time. processes: whether several processes send it."""

    share: float
    send: Sender
    has_processes: bool = True


def _pap(target: Target, seconds: float, process: int) -> Traffic:
    logins = [PapLogins(process * WINDOW + number, target.secret, target.users) for number in range(WINDOW)]
    return drive(target.authentication, target.secret, logins, seconds)


def _accounting(target: Target, seconds: float, process: int) -> Traffic:
    name, _ = target.users[process]
    records = [AccountingRecords(process * WINDOW + number, target.secret, name) for number in range(WINDOW)]
    return drive(target.accounting, target.secret, records, seconds)


def _eap(target: Target, seconds: float, process: int, *, resumes: bool) -> Traffic:
    stations: list[Dialogue] = []
    for number in range(process * WINDOW, process * WINDOW + WINDOW):
        name, password = target.users[number % len(target.users)]
        stations.append(PeapLogins(number, target.secret, name, password, resumes=resumes))
    return drive(target.authentication, target.secret, stations, seconds)


def _lists(target: Target, seconds: float, process: int) -> Traffic:
    scope = {**SCOPE, "domainId": target.domain_id, "pageSize": PAGE}
    requests = [post(LIST_DEVICES, {**scope, "pageId": page}, target.token) for page in range(1, 21)]
    return read_lists(target.http, requests, CONNECTIONS, seconds)


KINDS: Final[Mapping[str, Kind]] = {
    "pap": Kind(0.25, _pap),
    "peap": Kind(0.2, partial(_eap, resumes=False)),
    "peap_resumed": Kind(0.15, partial(_eap, resumes=True)),
    "accounting": Kind(0.2, _accounting),
    "lists": Kind(0.15, _lists, has_processes=False),
}


def measure(target: Target, seconds: float, workers: int, database: int | None = None) -> Iterator[tuple[str, Phase]]:
    """Measure each kind of load, and yield its name and results. Raises LoadError if an answer is wrong or missing.

    seconds: the time of all kinds together. workers: the processes of the service. database: the process id of the
    database server, if it runs on this machine.
    """
    processes = generators(workers)
    servers = [target.process_id] if database is None else [target.process_id, database]
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, initializer=_ignore_signals) as pool:
        try:
            _phase(pool, _pap, target, processes, seconds * WARM_UP, servers)
            for name, kind in KINDS.items():
                count = processes if kind.has_processes else 1
                yield name, _phase(pool, kind.send, target, count, seconds * kind.share, servers)
        except BaseException:  # the pool would wait for the end of the load
            for each in multiprocessing.active_children():
                each.kill()
            raise


def _ignore_signals() -> None:
    """Leave Ctrl-C to the parent. This process ends at SIGTERM and SIGHUP."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def generators(workers: int) -> int:
    """Return the number of processes of the load generator: as many as the cores that the service leaves free, at least
    one, and at most two for each worker."""
    free = int(usable_cores()) - workers
    return max(1, min(free, 2 * workers, MOST_PROCESSES))


def _phase(
    pool: ProcessPoolExecutor, send: Sender, target: Target, count: int, seconds: float, servers: Sequence[int]
) -> Phase:
    busy, before = machine_busy_s(), [cpu_s(each) for each in servers]
    found = list(pool.map(partial(send, target, seconds), range(count)))
    used, busy = [cpu_s(each) for each in servers], machine_busy_s() - busy
    return summed(found, [after - former for after, former in zip(used, before, strict=True)], busy)


def summed(found: Sequence[Traffic], used_s: Sequence[float], busy_s: float) -> Phase:
    """Return the results of all processes of the load generator.

    used_s: the processor time of the service meanwhile, and that of a database server on this machine. busy_s: that of
    all programs of the machine.
    """
    service_s, *database_s = used_s
    latencies = sorted(each for traffic in found for each in traffic.latencies)
    if not latencies:
        latencies = [0.0]
    seconds = max(each.seconds for each in found)
    done = sum(each.done for each in found)
    others = busy_s - sum(used_s) - sum(each.cpu_s for each in found)
    return Phase(
        rate=sum(each.done / each.seconds for each in found),
        p50_ms=1000 * latencies[len(latencies) // 2],
        p99_ms=1000 * latencies[len(latencies) * 99 // 100] if len(latencies) >= FEW else None,
        cpu_ms=1000 * service_s / max(done, 1),
        database_ms=1000 * sum(database_s) / max(done, 1),
        repeated=sum(each.repeated for each in found),
        generator=max(each.cpu_s / each.seconds for each in found),
        others=max(0.0, others / seconds),
    )

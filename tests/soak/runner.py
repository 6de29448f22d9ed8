"""A campaign: installations one after the other, each with its rounds, until the time is over."""

import os
import re
import shutil
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Final

from sallyport.base.clock import SECOND
from tests.soak import checks
from tests.soak.bulk import first_station, run_bulk, station
from tests.soak.clients import CLIENTS
from tests.soak.faults import FAULTS, kinds, settle
from tests.soak.history import Bulk, History
from tests.soak.nas import Turn, station_prefix
from tests.soak.schedule import ROUND_S, ROUNDS, Round, Step, rounds
from tests.soak.site import PASSWORD, QUIET, RECOVERY_S, SECRET, Site, running_site
from tests.torture.disk import SmallDisk
from tests.torture.probe import Answer, Probe

START_S: Final = 60.0
"""Time within which a node must start once all faults are over."""
_STATION: Final = re.compile("02(-[0-9A-F]{2}){5}")
STALLED_S: Final = 2.0
"""A machine that stands still for longer makes the checks of times meaningless."""
BY_NAME: Final = {each.name: each for each in FAULTS}


@dataclass
class Figures:
    """What a campaign has done and found. faults: the number of each kind. delays: of the untouched tenant, in
    seconds. starved: the number of rounds whose times were not judged, because the machine was busy otherwise."""

    faults: Counter[str] = field(default_factory=Counter)
    datagrams: int = 0
    disturbed_datagrams: int = 0
    logins: int = 0
    records: int = 0
    requests: int = 0
    rounds: int = 0
    delays: list[float] = field(default_factory=list)
    late: int = 0
    starved: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """The number of processes that were killed: nodes, and databases."""
        return sum(self.faults[name] for name in ("kill", "loss", "database-kill"))


@dataclass(frozen=True)
class Plan:
    """What to run. installation: the number of the first one. until: the monotonic time at which no further round
    begins."""

    seed: int
    engine: str
    until: float
    installation: int = 0
    rounds: int = ROUNDS
    seconds: float = ROUND_S


@dataclass(frozen=True)
class Tools:
    """The compiled programs, and a directory for everything else."""

    relay: Path
    radload: Path
    directory: Path
    disk: Path
    """The root of a small disk."""


def run(plan: Plan, tools: Tools, say: Callable[[str], None]) -> Figures:
    """Run a campaign. say: prints a line."""
    figures = Figures()
    for number in count(plan.installation):
        if time.monotonic() >= plan.until:
            return figures
        place = tools.directory / f"installation-{number}"
        place.mkdir()
        place.chmod(0o755)  # the user of PostgreSQL goes through it
        disk = SmallDisk(os.getpid(), tools.disk)
        with running_site(place, disk, tools.relay, plan.seed + number, engine=plan.engine) as site:
            _run_rounds(plan, tools, site, number, figures, say)
        figures.datagrams += site.passed.received
        figures.disturbed_datagrams += site.passed.lost + site.passed.repeated + site.passed.delayed
        shutil.rmtree(place)
        for left in tools.disk.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return figures


def _run_rounds(
    plan: Plan, tools: Tools, site: Site, number: int, figures: Figures, say: Callable[[str], None]
) -> None:
    sizes = list[list[checks.Size]]()
    for each in rounds(plan.seed, number, kinds(plan.engine), count=plan.rounds, seconds=plan.seconds):
        if time.monotonic() >= plan.until:
            break
        began = time.monotonic()
        found = run_round(site, each, tools, figures, plan.seconds)
        where = f"installation {number}, round {each.number}{' (calm)' if each.is_calm else ''}"
        figures.findings += [f"seed {plan.seed}, {where}: {text}" for text in found]
        figures.rounds += 1
        say(
            f"{where}: {len(each.steps)} faults, {figures.logins:,} logins and {figures.records:,} records so far, "
            f"{time.monotonic() - began:.0f} s" + "".join(f"\n    FINDING {text}" for text in found)
        )
        if not all(node.is_running for node in site.nodes):
            return
        if each.is_calm:
            sizes.append(site.sizes())
    for of_node in zip(*sizes, strict=True):
        figures.findings += [f"seed {plan.seed}, installation {number}: {each}" for each in checks.bounded(of_node)]


# --- a round ------------------------------------------------------------------------------------------------------


def run_round(site: Site, plan: Round, tools: Tools, figures: Figures, seconds: float) -> list[str]:
    """Run a round, and return its findings."""
    site.history = History()
    directory = tools.directory / "round"
    directory.mkdir()
    turn, errors, began = Turn(site, plan, directory), list[str](), time.monotonic()
    written = [len(node.log()) for node in site.nodes]
    clients = _clients(turn, tools, seconds, errors)
    faults = _faults(site, plan, began, figures, errors)
    with _probed(site, plan) as probe, _Pulse(site.history):
        _run_all(faults, clients, turn, began + seconds)
        errors += _settled(site, began)
        turn.over.set()
        for thread in clients:
            thread.join()
    shutil.rmtree(directory)
    if not all(node.is_running for node in site.nodes):
        return errors
    return errors + _logged(site, written) + check(site, plan, figures, probe.answers if probe else [])


def _clients(turn: Turn, tools: Tools, seconds: float, errors: list[str]) -> list[Thread]:
    """Return the threads of the clients, and of a load generator for each node."""
    threads = [_thread(errors, name, partial(client, turn)) for name, client in CLIENTS]
    for node in range(len(turn.site.nodes)):
        threads.append(_thread(errors, f"bulk{node}", partial(run_bulk, turn, tools.radload, node, seconds)))
    return threads


def _faults(site: Site, plan: Round, began: float, figures: Figures, errors: list[str]) -> list[Thread]:
    """Return a thread for each place that has faults."""
    places = defaultdict[str, list[Step]](list)
    for step in plan.steps:
        places[BY_NAME[step.fault].place].append(step)
    return [_thread(errors, place, partial(_break, site, steps, began, figures)) for place, steps in places.items()]


class _Pulse:
    """Measures in a thread for how long the machine does not run the campaign, which has the priority of the
    service."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.1):
            now = time.monotonic()
            self._history.stalled_s = max(self._history.stalled_s, now - last)
            last = now


@contextmanager
def _probed(site: Site, plan: Round) -> Iterator[Probe | None]:
    """Probe the delays of the untouched tenant in a calm round."""
    if not plan.is_calm:
        yield None
        return
    with Probe(site.nodes[0], SECRET, source=QUIET, user="ann", password=PASSWORD) as probe:
        yield probe


def _settled(site: Site, began: float) -> list[str]:
    """Start the nodes that are down. If one could not start before, because of another fault, the whole round was
    disturbed."""
    was_down = bool(site.stopped)
    findings = settle(site, patience_s=START_S)
    if was_down:
        site.history.disturbed.append((began, time.monotonic()))
    return findings


def _run_all(faults: Sequence[Thread], clients: Sequence[Thread], turn: Turn, until: float) -> None:
    try:
        for thread in (*clients, *faults):
            thread.start()
        for thread in faults:
            thread.join()
        time.sleep(max(0.0, until - time.monotonic()))
    except KeyboardInterrupt:
        turn.over.set()
        raise


def _thread(errors: list[str], name: str, work: Callable[[], None]) -> Thread:
    """Return a thread of a round. It ends with the process if the campaign is interrupted."""
    return Thread(target=_reporting, args=(errors, name, work), daemon=True)


def _reporting(errors: list[str], name: str, work: Callable[[], None]) -> None:
    """Run a thread of a round. An error of the campaign itself is a finding too."""
    try:
        work()
    except Exception:
        errors.append(f"{name} has ended\n{traceback.format_exc()}")


def _break(site: Site, steps: Iterable[Step], began: float, figures: Figures) -> None:
    """Run the faults of one place."""
    for step in steps:
        time.sleep(max(0.0, began + step.at_s - time.monotonic()))
        fault = BY_NAME[step.fault](site, Random(step.seed))
        figures.faults[step.fault] += 1
        started = time.monotonic()
        try:
            fault.start()
            time.sleep(max(0.0, step.lasts_s - (time.monotonic() - started)))
        finally:
            fault.stop()
            if fault.disturbs_all:
                site.history.disturbed.append((started, time.monotonic()))


def _logged(site: Site, written: Sequence[int]) -> list[str]:
    """Return a finding for each node that has logged an unexpected exception."""
    findings = []
    for node, before in zip(site.nodes, written, strict=True):
        lines = [line for line in node.log()[before:].splitlines() if "Traceback" in line]
        findings += [f"{node.directory.name} has logged {len(lines)} tracebacks: {lines[0][:1500]}"] if lines else []
    return findings


# --- the checks of a round ----------------------------------------------------------------------------------------


def check(site: Site, plan: Round, figures: Figures, answers: Sequence[Answer]) -> list[str]:
    """Hold the promises against the history of a round."""
    site.settle()
    _count_prompts(site)
    history, is_starved = site.history, site.history.stalled_s > STALLED_S
    may_repeat, is_shared = site.is_shared or is_starved, site.is_shared or is_starved
    figures.starved += is_starved
    figures.logins += len(history.logins) + sum(len(each.answers) for each in history.bulks if each.right != "stored")
    figures.records += sum(len(each.answers) for each in history.bulks if each.right == "stored")
    figures.requests += history.requests
    figures.delays += [] if is_starved else [each.delay_s for each in answers]
    figures.late += 0 if is_starved else len(checks.undelayed(answers))
    prefix = station_prefix(plan.number)
    rows = _logins(site, prefix, f"{prefix[:-1]}.")
    of_logins = [
        *checks.stored(history.logins, rows, may_repeat=may_repeat),
        *checks.one_answer(history.logins),
        *checks.one_accept(history.logins, rows, is_shared=is_shared),
        *checks.permitted(history.logins),
        *checks.admitted(history.logins),
    ]
    if not is_starved:
        of_logins += checks.one_prompt(history, rows, is_shared=is_shared)
    return [
        *(f"{text}; {_records_of(site, text)}" for text in of_logins),
        *([] if is_starved else checks.served(history, grace_s=RECOVERY_S) + checks.undelayed(answers)),
        *_check_bulks(site, plan, history.bulks, may_repeat=may_repeat, is_starved=is_starved),
    ]


def _count_prompts(site: Site) -> None:
    """Count the prompts of each login. A user has one login with a push in a round."""
    challenges = {(each["user"], each["challenge_id"]) for each in site.hook.prompts}
    prompts = Counter(user for user, _ in challenges)
    for login in site.history.logins:
        login.prompts = prompts[login.user]
    site.hook.prompts.clear()


def _records_of(site: Site, text: str) -> str:
    """Return the records of the station that a finding names."""
    found = _STATION.search(text)
    sql = "select at, node_id, factor, applied_decision, reason, latency_us from events where station = ? order by at"
    return f"records: {site.nodes[0].rows(sql, found[0])}" if found else ""


def _check_bulks(site: Site, plan: Round, bulks: Sequence[Bulk], *, may_repeat: bool, is_starved: bool) -> list[str]:
    first, end = (station(first_station(2 * number, 0)) for number in (plan.number, plan.number + 1))
    rows = {True: _records(site, plan.number), False: _logins(site, first, end)}
    findings = list[str]()
    for bulk in bulks:
        stored = [row for row in rows[bulk.right == "stored"] if row[0] in bulk.answers]
        findings += checks.bulk_stored(bulk, stored, may_repeat=may_repeat)
        findings += checks.right_answers(bulk) + ([] if is_starved else checks.answered(bulk))
    return findings


def _logins(site: Site, first: str, end: str) -> list[checks.Row]:
    """Return the stations and decisions of the logins from a station on to another one."""
    sql = "select station, applied_decision, at from events where station >= ? and station < ?"
    return [(str(name), str(decision), at / SECOND) for name, decision, at in site.nodes[0].rows(sql, first, end)]


def _records(site: Site, number: int) -> list[checks.Row]:
    """Return the sessions and statuses of the accounting records of a round."""
    sql = "select session_id, status_type, at from accounting_records where session_id >= ? and session_id < ?"
    found = site.nodes[0].rows(sql, f"{number}-".encode(), f"{number}.".encode())
    return [(f"{bytes(name).decode()}/{status}", "stored", at / SECOND) for name, status, at in found]

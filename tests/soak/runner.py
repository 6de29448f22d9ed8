"""A campaign: installations one after the other, each with its rounds, until the time is over."""

import math
import os
import shutil
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from threading import Thread
from typing import Final

from tests.soak import checks
from tests.soak.bulk import run_bulk
from tests.soak.clients import CLIENTS
from tests.soak.control import Control
from tests.soak.disk import MountedDisk
from tests.soak.history import History
from tests.soak.judging import check, check_installation, sample
from tests.soak.nas import Turn
from tests.soak.outages import FAULTS, kinds, settle
from tests.soak.report import Figures
from tests.soak.schedule import ROUND_S, ROUNDS, Round, Step, rounds
from tests.soak.site import PASSWORD, QUIET, SECRET, Site, running_site
from tests.torture.probe import Probe

START_S: Final = 60.0
"""Time within which a node must start once all faults are over."""
KEPT: Final = Path("build/soak")
"""Where the logs of a round with findings are kept."""
WRONG_SQL: Final = ("invalid input syntax", "syntax error", "operator does not exist", "violates")
"""Parts of errors of the database that no fault explains."""
BY_NAME: Final = {each.name: each for each in FAULTS}


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


def run(plan: Plan, tools: Tools, figures: Figures, say: Callable[[str], None]) -> None:
    """Run a campaign, and add what it shows to the figures. say: prints a line."""
    for number in count(plan.installation):
        if time.monotonic() >= plan.until:
            return
        place = tools.directory / f"installation-{number}"
        place.mkdir()
        place.chmod(0o755)  # the user of PostgreSQL goes through it
        _run_one(plan, tools, number, place, figures, say)
        shutil.rmtree(place)
        for left in tools.disk.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _run_one(plan: Plan, tools: Tools, number: int, place: Path, figures: Figures, say: Callable[[str], None]) -> None:
    """Run an installation in a directory, and add its figures, also those of an interrupted one."""
    own, disk, site = Figures(), MountedDisk(os.getpid(), tools.disk), None
    try:
        with running_site(place, disk, tools.relay, plan.seed + number, engine=plan.engine) as site:
            _run_installation(plan, tools, site, number, own, say)
    finally:
        if site is not None:
            own.datagrams, own.disturbed_datagrams = site.passed.received, site.passed.disturbed
        figures.add(own)


def _run_installation(
    plan: Plan, tools: Tools, site: Site, number: int, own: Figures, say: Callable[[str], None]
) -> None:
    sizes, kept = list[list[checks.Size]](), list[tuple[float, dict[str, str]]]()
    for each in rounds(plan.seed, number, kinds(plan.engine), count=plan.rounds, seconds=plan.seconds):
        if time.monotonic() >= plan.until:
            break
        began = time.monotonic()
        found = run_round(site, each, tools, own, plan.seconds)
        where = f"installation {number}, round {each.number}{' (calm)' if each.is_calm else ''}"
        own.findings += [f"seed {plan.seed}, {where}: {text}" for text in found]
        own.rounds += 1
        say(
            f"{where}: {len(each.steps)} faults; so far {own.kills} kills, {own.logins:,} logins, {own.records:,} "
            f"records; {time.monotonic() - began:.0f} s" + "".join(f"\n    FINDING {text}" for text in found)
        )
        if not all(node.is_running for node in site.nodes):
            break
        kept.append((time.monotonic(), sample(site.history)))
        if each.is_calm:
            sizes.append(site.sizes())
    found = check_installation(tools.directory, site, own, sizes, kept)
    say("".join(f"    FINDING {text}\n" for text in found))
    own.findings += [f"seed {plan.seed}, installation {number}: {text}" for text in found]


# --- a round ------------------------------------------------------------------------------------------------------


def run_round(site: Site, plan: Round, tools: Tools, figures: Figures, seconds: float) -> list[str]:
    """Run a round, and return its findings."""
    site.resume_prompts()
    site.history = History(spans=[*site.history.during(time.monotonic(), math.inf, checks.CIRCUIT_S)])
    directory = tools.directory / "round"
    directory.mkdir()
    turn, errors, began = Turn(site, plan, directory), list[str](), time.monotonic()
    written = [len(node.log()) for node in site.nodes]
    clients = _clients(turn, tools, seconds, errors)
    faults = _faults(site, plan, began, seconds, figures, errors)
    with _probed(site, plan) as probe, Control(site.database.url if site.database else None) as control:
        _run_all(faults, clients, turn, began + seconds)
        errors += settle(site, patience_s=START_S)
        turn.over.set()
        for thread in clients:
            thread.join()
    site.history.controls = control.results
    shutil.rmtree(directory)
    errors += site.history.errors
    if all(node.is_running for node in site.nodes):
        errors += _logged(site, written) + check(site, plan, figures, probe.results if probe else [])
    if errors:
        _keep(site, plan, began, written, errors)
    return errors


def _clients(turn: Turn, tools: Tools, seconds: float, errors: list[str]) -> list[Thread]:
    """Return the threads of the clients, and of a load generator for each node."""
    threads = [_thread(errors, name, partial(client, turn)) for name, client in CLIENTS]
    for node in range(len(turn.site.nodes)):
        threads.append(_thread(errors, f"bulk{node}", partial(run_bulk, turn, tools.radload, node, seconds)))
    return threads


def _faults(site: Site, plan: Round, began: float, seconds: float, figures: Figures, errors: list[str]) -> list[Thread]:
    """Return a thread for each place that has faults."""
    places = defaultdict[str, list[Step]](list)
    for step in plan.steps:
        places[BY_NAME[step.fault].place].append(step)
    return [
        _thread(errors, place, partial(_break, site, steps, began, seconds, figures)) for place, steps in places.items()
    ]


@contextmanager
def _probed(site: Site, plan: Round) -> Iterator[Probe | None]:
    """Probe the delays of the untouched tenant in a calm round."""
    if not plan.is_calm:
        yield None
        return
    with Probe(site.nodes[0], SECRET, source=QUIET, user="ann", password=PASSWORD) as probe:
        yield probe


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


def _break(site: Site, steps: Iterable[Step], began: float, seconds: float, figures: Figures) -> None:
    """Run the faults of one place. Those that are late, because one before them has taken long, are left out at the end
    of the round."""
    for step in steps:
        time.sleep(max(0.0, began + step.at_s - time.monotonic()))
        if time.monotonic() > began + seconds:
            return
        fault = BY_NAME[step.fault](site, Random(step.seed))
        figures.faults[step.fault] += 1
        started = time.monotonic()
        if fault.disturbs_all:
            site.lasting[id(fault)] = fault.nodes
        try:
            fault.start()
            time.sleep(max(0.0, step.lasts_s - (time.monotonic() - started)))
        finally:
            fault.stop()
            site.history.add(fault.span(started, time.monotonic()))
            site.lasting.pop(id(fault), None)
            figures.effects[step.fault] += fault.effect


def _keep(site: Site, plan: Round, began: float, written: Sequence[int], findings: Sequence[str]) -> None:
    """Keep the findings of a round, its faults and logins with their times, and the logs of the nodes in KEPT."""
    place = KEPT / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-round-{plan.number}"
    place.mkdir(parents=True)
    spans = sorted(site.history.spans, key=lambda span: span.began)
    lines = [f"{each.began - began:7.2f} to {each.ended - began:7.2f} s: {each}" for each in spans]
    for each in sorted(site.history.logins, key=lambda login: login.began):
        more = [f"prompt at {at - began:.2f} s" for at in each.prompts]
        for packet in each.packets:
            first, last = packet.first - began, packet.last - began
            more.append(f"{packet.sent} times to node {packet.node} from {first:.2f} to {last:.2f} s")
        lines.append(f"{each.began - began:7.2f} to {each.ended - began:7.2f} s: {', '.join([str(each), *more])}")
    (place / "findings.txt").write_text("\n".join([*findings, "", *lines, ""]))
    for node, before in zip(site.nodes, written, strict=True):
        (place / f"{node.directory.name}.log").write_text(node.log()[before:])


def _logged(site: Site, written: Sequence[int]) -> list[str]:
    """Return a finding for each node that has logged an unexpected exception, or an error in its SQL."""
    findings = list[str]()
    for node, before in zip(site.nodes, written, strict=True):
        log = node.log()[before:]
        wrong = [line for line in log.splitlines() if any(each in line for each in WRONG_SQL)]
        findings += [f"{node.directory.name} has logged {len(wrong)} errors of SQL: {wrong[0][:500]}"] if wrong else []
        number, at = log.count("Traceback"), log.find("Traceback")
        if number:
            findings.append(
                f"{node.directory.name} has logged {number} tracebacks: {log[max(0, at - 500) : at + 4000]}"
            )
    return findings

"""`sallyport bench`: measure this machine with a service of its own, and compare it with the documentation."""

import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

import click

from sallyport.base import log
from sallyport.base.errors import ConfigError, StartError
from sallyport.base.wire import Row
from sallyport.cli.benchmark.capacity import HERD, Figures, figures, herd_s, people
from sallyport.cli.benchmark.machine import describe, facts
from sallyport.cli.benchmark.measure import Phase, generators, measure
from sallyport.cli.benchmark.processes import memory_mib
from sallyport.cli.benchmark.service import throw_away_service
from sallyport.cli.line import Line
from sallyport.settings.settings import POSTGRES
from sallyport.shell.options import json_answer, wants_json

TITLES: Final = {
    "pap": "PAP logins",
    "peap": "PEAP logins, full",
    "peap_resumed": "PEAP logins, resumed",
    "accounting": "accounting records",
    "lists": "pages of ListDevices",
}
COLUMNS: Final = ("load", "a second", "p99 ms", "CPU ms each", "page: a second", "page: p99 ms", "page: CPU ms each")
DISTURBED: Final = 0.1
"""Cores that other programs may use during a measurement without a note."""
TERMINATED: Final = 128 + signal.SIGTERM


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=1, max=3600),
    default=60.0,
    show_default=True,
    help="Seconds for all measurements together.",
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder for the temporary data, on the disk to measure; otherwise the system's folder for temporary files.",
)
@click.option(
    "--database-url",
    default="",
    metavar="URL",
    help=f"URL of an empty PostgreSQL database ({POSTGRES}...), in place of an embedded one. The command fills it.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Processes of the service; several need --database-url.",
)
@json_answer
@click.pass_obj
def bench(line: Line, *, seconds: float, directory: Path | None, database_url: str, workers: int) -> None:
    """Measure how many logins this machine can decide, and compare it with the page Capacity of the documentation.

    The command starts a service with temporary data on free ports of 127.0.0.1, and sends it logins, accounting records
    and requests of the API. It neither reads nor changes an installation on this machine, but takes the processor time
    of its logins. Nothing else should run during the measurement.
    """
    if database_url:
        _check_empty(database_url)
    elif workers > 1:
        raise ConfigError(f"--workers: {workers} need a PostgreSQL database: add --database-url")
    log.configure(level="error", form="text")
    signal.signal(signal.SIGTERM, _terminate)
    folder = directory or Path(tempfile.gettempdir())
    engine = "PostgreSQL" if database_url else "embedded database (SQLite)"
    processes = generators(workers)
    if not wants_json():
        line.print(describe(folder))
        line.print(f"- service: {engine}, workers: {workers}; load generator, processes: {processes}")
    phases, memory = _measured(line, folder, seconds, database_url, workers)
    expected = figures()
    if not wants_json():
        line.print_rows(_rows(phases, memory, expected), COLUMNS)
    answer = _answer(facts(folder), engine, workers, processes, phases, memory)
    line.print_answer(answer, _meaning(phases, workers, expected))
    for text in _notes(phases, database_url):
        line.note(text)


def _measured(
    line: Line, folder: Path, seconds: float, database_url: str, workers: int
) -> tuple[Mapping[str, Phase], float]:
    """Return the results by kind of load, and the memory of the service in MiB."""
    phases: dict[str, Phase] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sallyport-bench-", dir=folder) as name,
        throw_away_service(Path(name), database_url=database_url, workers=workers) as target,
    ):
        for kind, phase in measure(target, seconds, workers):
            line.note(f"measured: {TITLES[kind]}")
            phases[kind] = phase
        return phases, memory_mib(target.process_id)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    sys.exit(TERMINATED)  # unlike the end by the signal itself, this stops the service and removes its data


def _check_empty(url: str) -> None:
    """Check that the measurement cannot change existing data. Raises ConfigError, StoreError."""
    from sallyport.store.postgres import check_driver

    check_driver()
    from sallyport.store.postgres.connection import connect

    if not url.startswith(POSTGRES):
        raise ConfigError(f"--database-url: the URL must begin with {POSTGRES}")
    with connect(url) as connection:
        row = connection.execute(_RELATIONS).fetchone()
    if row is None or row[0]:
        raise StartError("--database-url: the database is not empty; create one for this measurement: createdb bench")


_RELATIONS: Final = (
    "select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema' and not exists ("
    "select 1 from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid"
    " and d.deptype = 'e')"  # a relation of an extension
)


def _cpu_ms(phases: Mapping[str, Phase]) -> dict[str, float]:
    return {name: each.cpu_ms for name, each in phases.items()}


def _answer(
    machine: Mapping[str, str], engine: str, workers: int, processes: int, phases: Mapping[str, Phase], memory: float
) -> Row:
    return {
        "machine": dict(machine),
        "engine": engine,
        "workers": workers,
        "generators": processes,
        "phases": {name: _numbers(each) for name, each in phases.items()},
        "memoryMib": round(memory, 1),
        "people": people(_cpu_ms(phases), workers),
        "herdSeconds": round(herd_s(_cpu_ms(phases), HERD, workers), 1),
    }


def _numbers(phase: Phase) -> Row:
    return {
        "rate": round(phase.rate, 1),
        "isAtLeast": phase.is_at_least,
        "p50Ms": round(phase.p50_ms, 3),
        "p99Ms": round(phase.p99_ms, 3),
        "cpuMs": round(phase.cpu_ms, 4),
        "repeated": phase.repeated,
        "generatorBusy": round(phase.generator, 2),
        "otherCores": round(phase.others, 2),
    }


def _rows(phases: Mapping[str, Phase], memory: float, expected: Figures) -> list[Row]:
    rows: list[Row] = []
    for name, phase in phases.items():
        at_least = "at least " if phase.is_at_least else ""
        values = [TITLES[name], f"{at_least}{phase.rate:,.0f}", f"{phase.p99_ms:.1f}", f"{phase.cpu_ms:.3f}"]
        page = expected.phases.get(name)
        if page is not None:
            p99_ms = "" if page.p99_ms is None else f"{page.p99_ms:.1f}"
            values += [f"{page.rate:,.0f}", p99_ms, f"{page.cpu_ms:.3f}"]
        rows.append(dict(zip(COLUMNS, values, strict=False)))
    memories = {COLUMNS[0]: "memory of the service, MiB", COLUMNS[1]: f"{memory:.0f}"}
    return [*rows, {**memories, COLUMNS[4]: f"{expected.memory_mib:.0f}"}]


def _meaning(phases: Mapping[str, Phase], workers: int, expected: Figures) -> str:
    mine, its = _cpu_ms(phases), expected.cpu_ms
    return (
        f"Enough for {_rounded(people(mine, workers)):,} people with 802.1X every hour (page, one worker: "
        f"{_rounded(people(its)):,}): full PEAP logins that take half of the processor time.\n"
        f"After a power cut, {HERD:,} stations have logged in after at least {herd_s(mine, HERD, workers):.0f} s "
        f"(page: {herd_s(its):.0f} s).\n"
        f"The figures of the page are of {expected.date}: {expected.machine}."
    )


def _rounded(count: int) -> int:
    """Return a number with two significant digits."""
    return int(float(f"{count:.1e}"))


def _notes(phases: Mapping[str, Phase], database_url: str) -> list[str]:
    notes = []
    others = max(each.others for each in phases.values())
    if others > DISTURBED:
        notes.append(f"other programs used up to {others:.1f} cores meanwhile: stop them and measure again")
    if any(each.is_at_least for each in phases.values()):
        notes.append("at least: the load generator had no processor time left, so the service can answer more")
    if database_url:
        notes.append("the PostgreSQL database has the data of the measurement: remove it with dropdb")
    return notes

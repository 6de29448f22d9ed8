"""`sallyport bench`: measure this machine with a service of its own, and compare it with the documentation."""

import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from sallyport.base import log
from sallyport.base.errors import ConfigError, SallyportError, StartError
from sallyport.base.wire import Row
from sallyport.cli.benchmark.capacity import HERD, Figure, Supply, figures
from sallyport.cli.benchmark.machine import describe, facts
from sallyport.cli.benchmark.measure import Phase, generators, measure
from sallyport.cli.benchmark.processes import memory_mib, parent_process, usable_cores
from sallyport.cli.benchmark.service import throw_away_service
from sallyport.cli.line import Line
from sallyport.settings.settings import POSTGRES
from sallyport.shell.options import json_answer, wants_json

if TYPE_CHECKING:
    from sallyport.store.postgres.connection import Connection

TITLES: Final = {
    "pap": "PAP logins",
    "peap": "PEAP logins, full",
    "peap_resumed": "PEAP logins, resumed",
    "accounting": "accounting records",
    "lists": "pages of ListDevices",
}
COLUMNS: Final = (
    "load",
    "a second",
    "p99 ms",
    "CPU ms each",
    "PostgreSQL: CPU ms",
    "page: a second",
    "page: p99 ms",
    "page: CPU ms each",
)
DATABASE: Final = COLUMNS[4]
LOOPBACK: Final = ("127.0.0.1", "::1")
DISTURBED: Final = 0.1
"""Cores that other programs may use during a measurement without a note."""
LONGEST_S: Final = 300
"""Limit of --seconds: the results of all logins are in memory."""


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=1, max=LONGEST_S),
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
@click.option("--yes", is_flag=True, help="Measure although a service runs on this machine.")
@json_answer
@click.pass_obj
def bench(line: Line, *, seconds: float, directory: Path | None, database_url: str, workers: int, yes: bool) -> None:
    """Measure how many logins this machine can decide, and compare it with the page Capacity of the documentation.

    The command starts a service with temporary data on free ports of 127.0.0.1, and sends it logins, accounting records
    and requests of the API. It neither reads nor changes an installation on this machine, but takes the processor time
    of its logins. Nothing else should run during the measurement.
    """
    if not yes:
        _check_alone(line)
    database = None
    if database_url:
        database = _empty_database(database_url)
    elif workers > 1:
        raise ConfigError(f"--workers: {workers} need a PostgreSQL database: add --database-url")
    log.configure(level="error", form="text")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    folder = directory or Path(tempfile.gettempdir())
    engine = "PostgreSQL" if database_url else "embedded database (SQLite)"
    processes = generators(workers)
    if not wants_json():
        line.print(describe(folder))
        line.print(f"- service: {engine}, workers: {workers}; load generator, processes: {processes}")
    phases, memory = _measured(line, folder, seconds, database_url, workers, database)
    expected = figures().postgres if database_url else figures().phases
    if not wants_json():
        columns = [each for each in COLUMNS if database or each != DATABASE]
        line.print_rows(_rows(phases, memory, expected), columns)
    supply = Supply.of(phases, workers, usable_cores())
    answer = _answer(facts(folder), engine, supply, processes, phases, memory)
    line.print_answer(answer, _meaning(supply, expected))
    for text in _notes(phases, database_url, database):
        line.note(text)


def _measured(
    line: Line, folder: Path, seconds: float, database_url: str, workers: int, database: int | None
) -> tuple[Mapping[str, Phase], float]:
    """Return the results by kind of load, and the memory of the service in MiB."""
    phases: dict[str, Phase] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sallyport-bench-", dir=folder) as name,
        throw_away_service(Path(name), database_url=database_url, workers=workers) as target,
    ):
        for kind, phase in measure(target, seconds, workers, database):
            line.note(f"measured: {TITLES[kind]}")
            phases[kind] = phase
        return phases, memory_mib(target.process_id)


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)  # unlike the end by the signal itself, this stops the service and removes its data


def _check_alone(line: Line) -> None:
    """Check that no service of this machine would lose processor time. Raises StartError."""
    running = None
    with suppress(SallyportError):  # no installation, or another account's
        running = line.connection.process_id(wait=False)
    if running is not None:
        raise StartError(f"a service runs on this machine (process {running}): its logins would be slower; add --yes")


def _empty_database(url: str) -> int | None:
    """Check that the measurement cannot change existing data. Return the process id of the database server, if it runs
    on this machine. Raises ConfigError, StoreError."""
    from sallyport.store.postgres import check_driver

    check_driver()
    from sallyport.store.postgres.connection import connect

    if not url.startswith(POSTGRES):
        raise ConfigError(f"--database-url: the URL must begin with {POSTGRES}")
    with connect(url) as connection:
        row = connection.execute(_RELATIONS).fetchone()
        server = _server(connection)
    if row is None or row[0]:
        raise StartError("--database-url: the database is not empty; create one for this measurement: createdb bench")
    return server


def _server(connection: "Connection") -> int | None:
    """Return the process id of the database server. Return None if it runs on another machine or in a container."""
    info = connection.info
    if not info.host.startswith("/") and info.hostaddr not in LOOPBACK:
        return None
    return parent_process(info.backend_pid, "postgres")


_RELATIONS: Final = (
    "select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema' and not exists ("
    "select 1 from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid"
    " and d.deptype = 'e')"  # a relation of an extension
)


def _answer(
    machine: Mapping[str, str], engine: str, supply: Supply, processes: int, phases: Mapping[str, Phase], memory: float
) -> Row:
    return {
        "machine": dict(machine),
        "engine": engine,
        "workers": supply.workers,
        "cores": round(supply.cores, 2),
        "generators": processes,
        "phases": {name: _numbers(each) for name, each in phases.items()},
        "memoryMib": round(memory, 1),
        "stations": supply.stations,
        "herdSeconds": round(supply.herd_s(), 1),
    }


def _numbers(phase: Phase) -> Row:
    return {
        "rate": round(phase.rate, 1),
        "isAtLeast": phase.is_at_least,
        "p50Ms": round(phase.p50_ms, 3),
        "p99Ms": None if phase.p99_ms is None else round(phase.p99_ms, 3),
        "cpuMs": round(phase.cpu_ms, 4),
        "databaseMs": round(phase.database_ms, 4),
        "repeated": phase.repeated,
        "generatorBusy": round(phase.generator, 2),
        "otherCores": round(phase.others, 2),
    }


def _rows(phases: Mapping[str, Phase], memory: float, expected: Mapping[str, Figure]) -> list[Row]:
    rows: list[Row] = []
    for name, phase in phases.items():
        at_least = "at least " if phase.is_at_least else ""
        values = [TITLES[name], f"{at_least}{phase.rate:,.0f}", _percentile(phase.p99_ms), f"{phase.cpu_ms:.3f}"]
        values.append(f"{phase.database_ms:.3f}")
        page = expected.get(name)
        if page is not None:
            values += [
                "-" if page.rate is None else f"{page.rate:,.0f}",
                _percentile(page.p99_ms),
                f"{page.cpu_ms:.3f}",
            ]
        rows.append(dict(zip(COLUMNS, values, strict=False)))
    rows.append({COLUMNS[0]: "memory of the service, MiB", COLUMNS[1]: f"{memory:.0f}"})
    return rows


def _percentile(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.1f}"


def _meaning(supply: Supply, expected: Mapping[str, Figure]) -> str:
    page = Supply.of(expected)
    return (
        f"Enough for {_rounded(supply.stations):,} stations that log in by 802.1X every hour (page, one core: "
        f"{_rounded(page.stations):,}): full PEAP logins that take half of the processor time.\n"
        f"A herd, which is {HERD:,} stations that log in at the same time after a power cut, takes at least "
        f"{supply.herd_s():.0f} s (page, one core: {page.herd_s():.0f} s).\n"
        f"The figures of the page are of {figures().date}: {figures().machine}."
    )


def _rounded(count: int) -> int:
    """Return a number with two significant digits."""
    return int(float(f"{count:.1e}"))


def _notes(phases: Mapping[str, Phase], database_url: str, database: int | None) -> list[str]:
    notes = []
    others = max(each.others for each in phases.values())
    if others > DISTURBED:
        notes.append(f"other programs used up to {others:.1f} cores meanwhile: stop them and measure again")
    if any(each.is_at_least for each in phases.values()):
        notes.append("at least: the load generator had no processor time left, so the service can answer more")
    if database_url and database is None:
        notes.append("PostgreSQL runs on another machine or in a container: its processor time was not measured")
    if database_url:
        notes.append("the PostgreSQL database has the data of the measurement: remove it with dropdb")
    return notes

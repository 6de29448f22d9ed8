"""Accounting in Sallyport and in FreeRADIUS with the packaged rlm_sql_sqlite. They get the same load in turn.

A session is a Start, an interim record and a Stop. Both servers record before they answer. Each turn ends with a check
that every answered record is in its session. If one is missing, the comparison is void. Everything else is as in the
benchmark `radius`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tabulate import tabulate

from .child import Running
from .freeradius_accounting import accounting_freeradius
from .radius import OURS, WINDOWS, Results, Server, figures, measure
from .radiusd import version
from .sallyport import sallyport
from .settings import BenchmarkError, Settings

SESSIONS = (
    "select (select count(*) from sessions) + (select count(*) from sessions where session_time >= 60) "
    "+ (select count(*) from sessions where stopped is not null), (select count(*) from accounting_records)"
)
THEIRS = "freeradius-accounting"


def count_records(database: Path) -> int:
    """Return the number of records in the sessions, counted as for FreeRADIUS. Raises BenchmarkError if other records
    are stored.
    """
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        in_sessions, kept = connection.execute(SESSIONS).fetchone()
    if in_sessions != kept:
        raise BenchmarkError(f"Sallyport kept {kept} records, but its sessions count {in_sessions}")
    return int(kept)


@contextmanager
def accounting_sallyport(directory: Path) -> Iterator[Running]:
    """Run Sallyport's accounting port."""
    with sallyport(directory, users=1) as running:
        database = directory / "data" / "sallyport.db"
        yield Running("Sallyport", running.accounting_port, running.process_id, lambda: count_records(database))


SERVERS = (Server(THEIRS, accounting_freeradius), Server(OURS, accounting_sallyport))


def run(settings: Settings) -> str:
    """Measure all chosen servers and return Markdown. Raises BenchmarkError if a server does not start or the
    comparison is void.
    """
    results, names = measure(SERVERS, settings, "-a", "-N", "5")
    return "\n\n".join([_introduction(settings), figures(results, names), *_ratios(results)])


def _introduction(settings: Settings) -> str:
    return (
        f"Start, interim record and Stop of each session against {version()}; best of {settings.rounds} round(s), each "
        f"of at most {settings.seconds:g} s. Both have the session on disk before the answer; Sallyport the record too."
    )


def _ratios(results: Results) -> list[str]:
    """Return the ratios to FreeRADIUS, or an empty list if a server was left out."""
    rows = []
    for window in WINDOWS:
        ours, theirs = results.get((OURS, window)), results.get((THEIRS, window))
        if ours is None or theirs is None:
            return []
        throughput = ours.requests_per_second / theirs.requests_per_second
        economy = theirs.server_cpu_us_per_request / ours.server_cpu_us_per_request
        rows.append([window, f"{throughput:.1f}", f"{economy:.1f}"])
    headers = ["window", "records/s / FreeRADIUS (aim: 10)", "records per CPU second / FreeRADIUS (aim: 10)"]
    return [tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["right"] * 3)]

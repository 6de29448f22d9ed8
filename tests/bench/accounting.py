"""Accounting in Sallyport and in FreeRADIUS with the packaged rlm_sql_sqlite. They get the same load in turn.

A session is a Start, an interim record and a Stop. Both servers record before they answer. Each turn ends with a check
that every answered record is in its session. If one is missing, the comparison is void. Everything else is as in the
benchmark `radius`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .child import Running
from .freeradius_accounting import accounting_freeradius
from .radius import OURS, WINDOWS, Results, Server, economies, figures, measure, rates
from .radiusd import version
from .sallyport import sallyport
from .settings import BenchmarkError, Settings
from .spread import Aim, compared

SESSIONS = (
    "select (select count(*) from sessions) + (select count(*) from sessions where input_octets > 0) "
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
    return "\n\n".join([_introduction(settings), figures(results, names), *compared(_aims(results))])


def _introduction(settings: Settings) -> str:
    return (
        f"Start, interim record and Stop of each session against {version()}; {settings.rounds} round(s), each "
        f"of at most {settings.seconds:g} s. Both have the session on disk before the answer; Sallyport the record too."
    )


def _aims(results: Results) -> list[Aim]:
    """Return the ratios to FreeRADIUS, or an empty list if a server was left out."""
    found = []
    for window in WINDOWS:
        found += [
            Aim(f"records/s / FreeRADIUS, {window} outstanding", 10, rates(results, THEIRS, window), ".1f"),
            Aim(
                f"records per CPU second / FreeRADIUS, {window} outstanding",
                10,
                economies(results, THEIRS, window),
                ".1f",
            ),
        ]
    return [each for each in found if each.values]

"""The formula of docs/operate/capacity.md: how many people a machine can serve, and how long a herd takes.

The work of a login is the processor time of the service. The event loop of a process uses one core. In normal use it
should be busy for at most a part of the time (USABLE), because a login waits longer the busier the event loop is.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FIGURES: Final = Path(__file__).with_name("figures.toml")
USABLE: Final = 0.5
"""Share of a core that the logins of normal use may take."""
RECORDS: Final = 2
"""Accounting records for each 802.1X login: a device sends one at the login, and interim records between logins."""
CROWD: Final = 1.4
"""Processor time of a login in a herd, relative to that of 32 stations at a time: measured with 2,000 at a time."""
HOUR_S: Final = 3600
HERD: Final = 100_000
DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Figure:
    """The expected results of one kind of load: units a second, p99 and processor time of a unit in milliseconds.

    p99_ms: None if it was not measured. source: where the figure was measured, in Markdown.
    """

    rate: float
    cpu_ms: float
    source: str
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the page.

    phases: by the names of `measure.KINDS`; those that were not measured are missing. octets: on disk for each login
    (event) and each accounting record (record).
    """

    date: str
    machine: str
    memory_mib: float
    phases: Mapping[str, Figure]
    octets: Mapping[str, int]

    @property
    def cpu_ms(self) -> Mapping[str, float]:
        """Return the processor time for a unit, by kind of load."""
        return {name: each.cpu_ms for name, each in self.phases.items()}


@cache
def figures() -> Figures:
    """Return the figures of the page."""
    found = tomllib.loads(FIGURES.read_text(encoding="utf-8"))
    return Figures(**{**found, "phases": {name: Figure(**each) for name, each in found["phases"].items()}})


def login_ms(cpu_ms: Mapping[str, float], *, login: str = "peap") -> float:
    """Return the processor time of an 802.1X login with its accounting records, in milliseconds.

    cpu_ms: the processor time for a unit, by the names of `measure.KINDS`. login: peap or peap_resumed.
    """
    return cpu_ms[login] + RECORDS * cpu_ms["accounting"]


def cores(cpu_ms: Mapping[str, float], people: int, interval_s: float = HOUR_S) -> float:
    """Return the number of cores that people need if the station of each logs in once in an interval.

    Each login is a full one. The cores are busy for the share USABLE of the time.
    """
    return people / interval_s * login_ms(cpu_ms) / 1000 / USABLE


def people(cpu_ms: Mapping[str, float], workers: int = 1, interval_s: float = HOUR_S) -> int:
    """Return the number of people that the cores of a service can serve: the inverse of `cores`. workers: the processes
    of the service, each of which uses one core."""
    return int(workers / cores(cpu_ms, 1, interval_s))


def herd_s(cpu_ms: Mapping[str, float], stations: int = HERD, workers: int = 1) -> float:
    """Return the seconds until all stations of a herd have logged in, with full logins. The cores are busy for the
    whole time."""
    return stations * CROWD * login_ms(cpu_ms) / 1000 / workers


def disk_gb(people: int, days: int, interval_s: float = HOUR_S) -> float:
    """Return the disk for the events and accounting records of some days, in 10^9 octets."""
    each = figures().octets["event"] + RECORDS * figures().octets["record"]
    return people / interval_s * DAY_S * days * each / 1e9

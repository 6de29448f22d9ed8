"""The formula of docs/operate/capacity.md: how many stations a machine can serve, and how long a herd takes.

A herd is a large number of stations that log in at the same time, such as after a power cut.

The work of a login is the processor time of the service. The event loop of a process uses one core. In normal use it
should be busy for at most a part of the time (USABLE), because a login waits longer the busier the event loop is.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol, Self

FIGURES: Final = Path(__file__).with_name("figures.toml")
USABLE: Final = 0.5
"""Share of a core that the logins of normal use may take."""
HOUR_S: Final = 3600
INTERIM_S: Final = HOUR_S
"""The Acct-Interim-Interval of the examples. Devices that send interim records more often need more disk."""
CROWD: Final = 1.4
"""Processor time of a login in a herd, relative to that of 32 stations at a time: measured with 2,000 at a time."""
HERD: Final = 100_000
DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Figure:
    """The expected results of one kind of load: units a second, p99 and processor time of a unit in milliseconds.

    rate, p99_ms: None if they were not measured. database_ms: the processor time of a database server. source:
    where the figure was measured, in Markdown.
    """

    cpu_ms: float
    source: str
    rate: float | None = None
    p99_ms: float | None = None
    database_ms: float = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the page.

    phases: by the names of `measure.KINDS`; those that were not measured are missing. postgres: the same with a
    PostgreSQL database. octets: on disk for each login
    (event) and each accounting record (record).
    """

    date: str
    machine: str
    memory_mib: float
    phases: Mapping[str, Figure]
    postgres: Mapping[str, Figure]
    octets: Mapping[str, int]


class Cost(Protocol):
    """The processor times of a kind of load: `Figure`, or a result of `measure`."""

    @property
    def cpu_ms(self) -> float: ...

    @property
    def database_ms(self) -> float: ...


@cache
def figures() -> Figures:
    """Return the figures of the page."""
    found = tomllib.loads(FIGURES.read_text(encoding="utf-8"))
    for engine in ("phases", "postgres"):
        found[engine] = {name: Figure(**each) for name, each in found[engine].items()}
    return Figures(**found)


def login_ms(cpu_ms: Mapping[str, float], *, login: str = "peap", interval_s: float = HOUR_S) -> float:
    """Return the processor time of an 802.1X login with its accounting records, in milliseconds.

    cpu_ms: the processor time for a unit, by the names of `measure.KINDS`. login: peap or peap_resumed. interval_s: the
    time between two logins of a station.
    """
    return cpu_ms[login] + records(interval_s) * cpu_ms["accounting"]


def records(interval_s: float = HOUR_S, interim_s: float = INTERIM_S) -> float:
    """Return the accounting records for each 802.1X login: one at the login, and one in each Acct-Interim-Interval (RFC
    2869 section 2.1) until the next login."""
    return 1 + interval_s / interim_s


@dataclass(frozen=True, slots=True)
class Supply:
    """The processors of a service, and what a login takes of them.

    service_ms: the service's processor time for a login with its records. database_ms: that of a database server on
    the same machine. workers: the processes of the service. Each uses at most one core. cores: of the machine.
    """

    service_ms: float
    database_ms: float = 0
    workers: int = 1
    cores: float = 1

    @classmethod
    def of(cls, costs: Mapping[str, Cost], workers: int = 1, cores: float = 1) -> Self:
        """Return the supply for full PEAP logins. costs: by the names of `measure.KINDS`."""
        service_ms = login_ms({name: each.cpu_ms for name, each in costs.items()})
        database_ms = login_ms({name: each.database_ms for name, each in costs.items()})
        return cls(service_ms, database_ms, workers, cores)

    @property
    def logins(self) -> float:
        """Return the logins a second at which all workers, or all cores of the machine, are busy."""
        return 1000 * min(self.workers / self.service_ms, self.cores / (self.service_ms + self.database_ms))

    @property
    def stations(self) -> int:
        """Return the number of stations that can log in once in an hour. The processors are busy for the share USABLE
        of the time."""
        return int(self.logins * HOUR_S * USABLE)

    def cores_for(self, stations: int) -> float:
        """Return the number of cores that stations need if each logs in once in an hour: the inverse of `stations`."""
        return stations / HOUR_S * (self.service_ms + self.database_ms) / 1000 / USABLE

    def herd_s(self, stations: int = HERD) -> float:
        """Return the seconds until all stations of a herd have logged in, with full logins. The processors are busy for
        the whole time."""
        return stations * CROWD / self.logins


def disk_gb(stations: int, days: int, interval_s: float = HOUR_S) -> float:
    """Return the disk for the events and accounting records of some days, in 10^9 octets."""
    each = figures().octets["event"] + records(interval_s) * figures().octets["record"]
    return stations / interval_s * DAY_S * days * each / 1e9

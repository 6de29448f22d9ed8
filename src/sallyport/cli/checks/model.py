"""The values of the checks: the findings that a check yields, and the data that all checks share."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from sallyport.base.wire import Row
from sallyport.cli.line import Line
from sallyport.settings.settings import Settings


class Level(StrEnum):
    """The severity of a finding. After a problem, the exit status of the doctor is 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a check. It is a line of the output."""

    level: Level
    text: str


def ok(text: str) -> Finding:
    """Return a finding that something is correct."""
    return Finding(Level.OK, text)


def warning(text: str) -> Finding:
    """Return a finding about a weakness that an admin should look at."""
    return Finding(Level.WARNING, text)


def problem(text: str) -> Finding:
    """Return a finding about a fault that an admin must repair."""
    return Finding(Level.PROBLEM, text)


class Examination:
    """The data of one run of the doctor. A property raises an error if its data cannot be read."""

    def __init__(self, line: Line, environ: Mapping[str, str] = os.environ) -> None:
        self.line = line
        self.environ = environ
        self._rows: dict[str, list[Row]] = {}

    @property
    def settings(self) -> Settings:
        """Return the settings of the installation. Raises ConfigError."""
        return self.line.settings()

    @cached_property
    def process_id(self) -> int | None:
        """Return the process id of the running service. Return None if no service runs. Raises StartError if the
        service does not answer or is not ready."""
        return self.line.connection.process_id()

    @cached_property
    def domains(self) -> list[Row]:
        """Return the domains of the installation, as GetAllDomains returns them."""
        return list(self.line.listed_everywhere("/ad/GetAllDomains", "domains", size=100))

    @cached_property
    def clients(self) -> list[Row]:
        """Return the RADIUS clients of the installation, as ListClients returns them."""
        return list(self.line.listed_everywhere("/network_device/ListClients", "clients"))

    def rows(self, command: str) -> list[Row]:
        """Return the rows of a list command. A repeated call returns the rows of the first call."""
        if command not in self._rows:
            self._rows[command] = self.line.rows(command)
        return self._rows[command]


Check = Callable[[Examination], Iterator[Finding]]

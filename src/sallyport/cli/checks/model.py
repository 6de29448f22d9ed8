"""A check yields findings. This module has the finding, and the data that checks share."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from sallyport.base.config import Settings
from sallyport.base.wire import Row
from sallyport.cli.line import Line


class Level(StrEnum):
    """The severity of a finding. A problem makes the exit status 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a check: a line of the output."""

    level: Level
    text: str


def ok(text: str) -> Finding:
    """Return a finding without a fault."""
    return Finding(Level.OK, text)


def warning(text: str) -> Finding:
    """Return a finding about a weakness that an admin should examine."""
    return Finding(Level.WARNING, text)


def problem(text: str) -> Finding:
    """Return a finding about a fault."""
    return Finding(Level.PROBLEM, text)


class Examination:
    """The data of one run of the doctor. A property raises an error if its data cannot be read."""

    def __init__(self, line: Line, environ: Mapping[str, str] = os.environ) -> None:
        self.line = line
        self.environ = environ
        self._rows: dict[str, list[Row]] = {}

    @property
    def settings(self) -> Settings:
        """The settings of the installation. Raises ConfigError."""
        return self.line.settings()

    @cached_property
    def process_id(self) -> int | None:
        """The process id of the running service, or None. Raises StartError if the service cannot be reached or is not
        ready."""
        return self.line.connection.process_id()

    @cached_property
    def domains(self) -> list[Row]:
        """The domains of the installation, as GetAllDomains returns them."""
        return list(self.line.listed_everywhere("/ad/GetAllDomains", "domains", size=100))

    @cached_property
    def clients(self) -> list[Row]:
        """The RADIUS clients of the installation, as ListClients returns them."""
        return list(self.line.listed_everywhere("/network_device/ListClients", "clients"))

    def rows(self, command: str) -> list[Row]:
        """Return the rows of a list command. Each command runs once; later calls return the same rows."""
        if command not in self._rows:
            self._rows[command] = self.line.rows(command)
        return self._rows[command]


Check = Callable[[Examination], Iterator[Finding]]

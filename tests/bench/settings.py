"""The values that the command line of the benchmarks sets, and the error that ends a benchmark."""

from dataclasses import dataclass
from pathlib import Path


class BenchmarkError(Exception):
    """A benchmark could not run, or its comparison is void. The message names the reason."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One call of `make bench`. directory: the directory for the databases of the servers; its file system affects the
    result. rounds: the number of turns of each server. seconds, requests: a single measurement
    stops when one of these limits is reached. servers: the names of the servers to measure; if empty, all are measured.
    """

    directory: Path
    rounds: int
    seconds: float
    requests: int
    servers: tuple[str, ...]

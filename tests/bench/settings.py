"""What the command line of the benchmarks chooses, and the error that ends one."""

from dataclasses import dataclass
from pathlib import Path


class BenchmarkError(Exception):
    """A benchmark could not run, or its comparison is void; the message names the missing fact."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One call of `make bench`.

    directory: where servers keep their databases; its file system is part of the result.
    rounds: how often each server takes its turn; the best round of each counts.
    seconds, requests: where a single measurement stops, whichever comes first.
    servers: names of the servers to measure; empty for all.
    """

    directory: Path
    rounds: int
    seconds: float
    requests: int
    servers: tuple[str, ...]

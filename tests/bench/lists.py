"""Large lists. Each request is made many times over HTTP on one open connection, and many times inside a process
through `Store.read`. The difference is the cost of HTTP. No login arrives meanwhile.
"""

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
import trio
from prometheus_client import CollectorRegistry
from tabulate import tabulate

from sallyport.metrics import StoreMetrics
from sallyport.store.data_folder import Reserve
from sallyport.store.model import Tx
from sallyport.store.sqlite import SqliteStore
from tests.ports import free_port

from .child import child_process, wait_until
from .sallyport import PROGRAM, command, environment, is_ready
from .settings import BenchmarkError

REPEATS = 200


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a repeated request: the number of matches, and the milliseconds until each answer."""

    hits: int
    times: list[float]

    def summary(self) -> list[str]:
        """Return the time of the first answer, then p50, p95 and the maximum of the others."""
        first, *others = self.times
        ordered = sorted(others)
        places = (min(len(ordered) - 1, int(len(ordered) * part)) for part in (0.5, 0.95, 1))
        return [f"{each:.1f}" for each in (first, *(ordered[place] for place in places))]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant with one domain."""

    number: int
    domain_id: int
    token: str


class Case(Protocol):
    """A request of a list."""

    @property
    def name(self) -> str:
        """Return the name of the request in the table."""

    @property
    def path(self) -> str:
        """Return the path of the operation."""

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the list."""

    def body(self, tenant: Tenant) -> Mapping[str, object]:
        """Return the body of the HTTP request."""

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Return the number of matches inside the process."""


def environ_of(data: Path) -> Mapping[str, str]:
    """Return the environment of a service that has ports of its own."""
    return environment(data, http=free_port(), authentication=free_port(), accounting=free_port())


def add_tenant(environ: Mapping[str, str], directory: Path, number: int) -> Tenant:
    """Add a tenant with a domain to the store. If there is no store, create it."""
    command(["db", "migrate"], environ, directory)
    where = ("--org", "1", "--tenant", str(number))
    token = command(["token", "create", *where], environ, directory)
    domain_id = int(command(["domain", "add", f"bench{number}", *where], environ, directory))
    return Tenant(number, domain_id, token)


@asynccontextmanager
async def open_store(data: Path) -> AsyncIterator[SqliteStore]:
    """Open the store of a stopped service."""
    store = SqliteStore(data / "sallyport.db", StoreMetrics(CollectorRegistry()), Reserve(data / "reserve", 0))
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        yield store
        nursery.cancel_scope.cancel()
    store.close()


def table(cases: Sequence[Case], inside: Mapping[str, Measured], outside: Mapping[str, Measured]) -> str:
    """Measure all cases, over HTTP and inside a process. Raises BenchmarkError if the two found different rows."""
    rows = []
    for case in cases:
        over_http, by_sql = outside[case.name], inside[case.name]
        if over_http.hits != by_sql.hits:
            raise BenchmarkError(f"{case.name}: {by_sql.hits} match in the store, {over_http.hits} over HTTP")
        rows.append([case.name, f"{by_sql.hits:,}", *over_http.summary(), *by_sql.summary()])
    headers = [
        "milliseconds",
        "hits",
        *(f"{where} {what}" for where in ("HTTP", "SQL") for what in ("first", "p50", "p95", "max")),
    ]
    alignment = ["left", *["right"] * 9]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=alignment)


async def measure_inside(
    data: Path, cases: Sequence[Case], large: Tenant, small: Tenant, seconds: float
) -> dict[str, Measured]:
    """Measure each case through `Store.read`. seconds: the longest time for one case."""
    results = {}
    async with open_store(data) as store:
        for case in cases:
            work, hits, times = case.work(case.tenant(large, small)), 0, []
            for _ in _turns(seconds):
                started = time.perf_counter()
                hits = await store.read(work)
                times.append((time.perf_counter() - started) * 1000)
            measured = results[case.name] = Measured(hits, times)
            tell(f"SQL: {case.name}: {measured.hits:,} hits, {measured.summary()[1]} ms")
    return results


def measure_outside(
    environ: Mapping[str, str], directory: Path, cases: Sequence[Case], large: Tenant, small: Tenant, seconds: float
) -> dict[str, Measured]:
    """Measure each case over HTTP. seconds: the longest time for one case."""
    results = {}
    with _service(environ, directory) as http:
        for case in cases:
            tenant = case.tenant(large, small)
            body, headers = case.body(tenant), {"X-Authorization": tenant.token}
            hits, times = 0, list[float]()
            for _ in _turns(seconds):
                started = time.perf_counter()
                hits = _ask(http, case.path, body, headers)
                times.append((time.perf_counter() - started) * 1000)
            measured = results[case.name] = Measured(hits, times)
            tell(f"HTTP: {case.name}: {measured.summary()[1]} ms")
    return results


def tell(progress: str) -> None:
    """Print a line of progress."""
    print(progress, file=sys.stderr, flush=True)


def _turns(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    for number in range(REPEATS):
        if number < 2 or time.monotonic() < deadline:  # the first turn, and one more
            yield


@contextmanager
def _service(environ: Mapping[str, str], directory: Path) -> Iterator[httpx.Client]:
    address, output = environ["SALLYPORT_HTTP_BIND"], directory / "output"
    with (
        child_process([str(PROGRAM), "serve"], output=output, environment=environ, directory=directory) as process,
        httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=60) as client,
    ):
        wait_until(lambda: is_ready(int(address.rpartition(":")[2])), process, output, seconds=60)
        yield client


def _ask(http: httpx.Client, path: str, body: Mapping[str, object], headers: Mapping[str, str]) -> int:
    answer = http.post(path, json=body, headers=headers)
    if answer.status_code != 200:
        raise BenchmarkError(f"{path} {body}: {answer.status_code} {answer.text}")
    found = answer.json()
    return int(found["totalCount"] if "totalCount" in found else found["count"])

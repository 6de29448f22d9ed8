"""Logins at a fixed rate, alone and beside a busy console.

The console has four people who page through the slowest lists, each with a pause between two pages, and 20 open live
logs, half of them with a filter that matches no login. One thread reads all of these streams.

The browsers, the load generator and the service share the processors. So the same pages delay logins even if another
process serves them, whose live logs get no logins. The third kind of turn measures this.
"""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
from tabulate import tabulate

from tests.running_service import RunningService

from .child import SECRET
from .console_store import LOGIN_USERS
from .radload import Load, compile_radload, run_radload
from .settings import BenchmarkError, Settings

RATE = 1_000
"""Logins a second."""
PEOPLE, STREAMS = 4, 20
PAUSE_S = 0.5
DEVICES = 100


@dataclass
class Seen:
    """What the people and the open pages have got so far. times: the milliseconds of each page."""

    times: list[float] = field(default_factory=list)
    octets: int = 0
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Console:
    """The console of a service. people: the browsers of signed-in people. addresses: the addresses that they open."""

    service: RunningService
    people: Sequence[httpx.Client]
    addresses: Sequence[str]


def measure(console: Console, other: Console, directory: Path, settings: Settings) -> str:
    """Return a table of the logins of the service of `console`. other: the console of another process with a copy of
    the store."""
    program, service = compile_radload(directory), console.service
    rows: dict[str, list[list[str]]] = {"alone": [], "with the console": [], "beside that of another process": []}
    logins(service, program, 2)  # devices register at their first login
    for _ in range(settings.rounds):
        for kind, used in zip(rows, (None, console, other), strict=True):
            seen = Seen()
            with nullcontext() if used is None else _used(used, seen):
                load = logins(service, program, settings.seconds)
            rows[kind].append([kind, *figures(load), *(("", "") if used is None else _pages(seen))])
    headers = ["", "logins/s", "lost", "p50 ms", "p99 ms", "longest ms", "CPU µs each", "pages, p50 ms", "live MiB"]
    told = [row for several in rows.values() for row in several]
    return tabulate(told, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 8])


def logins(service: RunningService, program: Path, seconds: float) -> Load:
    """Send RATE logins a second. program: the load generator."""
    count = int(RATE * seconds)
    given = {"p": service.ports.auth, "S": SECRET, "n": count, "r": RATE, "u": LOGIN_USERS, "N": DEVICES, "b": 4}
    options = [text for name, value in given.items() for text in (f"-{name}", str(value))]
    return run_radload(program, [*options, "-i", str(service.process_id)], seconds=seconds + 5)


def figures(load: Load) -> list[str]:
    """Return the columns of a table: logins a second, lost ones, p50, p99, maximum, and processor time of each."""
    times = [f"{each:.2f}" for each in (load.p50_ms, load.p99_ms, load.max_ms)]
    return [f"{load.requests_per_second:,.0f}", str(load.lost), *times, f"{load.server_cpu_us_per_request:.0f}"]


def _pages(seen: Seen) -> list[str]:
    ordered = sorted(seen.times)
    return [
        f"{len(ordered)}, {ordered[len(ordered) // 2]:.0f}" if ordered else "none",
        f"{seen.octets / (1 << 20):.1f}",
    ]


@contextmanager
def _used(console: Console, seen: Seen) -> Iterator[None]:
    """Open the streams and page through the addresses until the block ends. Raises BenchmarkError if a page has an
    error, or a stream ends."""
    ended, service, people, addresses = threading.Event(), console.service, console.people, console.addresses
    with ExitStack() as stack:
        opened = (_stream(service, people[number % len(people)], number) for number in range(STREAMS))
        streams = [stack.enter_context(each) for each in opened]
        jobs: list[Callable[[], None]] = [partial(_read, streams, seen, ended)]
        for number, person in enumerate(people):
            jobs.append(partial(_page, person, addresses[number :: len(people)], seen, ended))
        threads = [threading.Thread(target=_guarded, args=(job, seen)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    if seen.error is not None:
        raise BenchmarkError(f"the console: {seen.error!r}")


def _guarded(job: Callable[[], None], seen: Seen) -> None:
    try:
        job()
    except BaseException as error:
        seen.error = error


@contextmanager
def _stream(service: RunningService, person: httpx.Client, number: int) -> Iterator[socket.socket]:
    """Yield the connection of an open live log. Every other one has a filter that matches no login."""
    path = "/logins/live?search=nobody" if number % 2 else "/logins/live"
    cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    with socket.create_connection(("127.0.0.1", service.ports.http)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n".encode())
        first = connection.recv(4096)
        if b" 200 " not in first:
            raise BenchmarkError(f"{path}: {first!r}")
        yield connection


def _read(streams: Sequence[socket.socket], seen: Seen, ended: threading.Event) -> None:
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while not ended.is_set():
            for key, _ in selector.select(0.1):
                octets = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                if not octets:
                    raise BenchmarkError("a live log has ended")
                seen.octets += len(octets)


def _page(person: httpx.Client, addresses: Sequence[str], seen: Seen, ended: threading.Event) -> None:
    while not ended.is_set():
        for address in addresses:
            started = time.perf_counter()
            answer = person.get(address)
            seen.times.append((time.perf_counter() - started) * 1000)
            if answer.status_code >= 500:
                raise BenchmarkError(f"{address}: {answer.status_code}")
            if ended.wait(PAUSE_S):
                break

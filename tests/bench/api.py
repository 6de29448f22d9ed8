"""Logins at a fixed rate, alone and beside 16 busy connections of the API, in turns.

Each connection requests one page of a list after the other, without a pause: devices, logins, endpoint users, instances
and groups, mostly of 10 entries. The p99 of the logins should be below 10 ms. The requests are ready-made octets, so
that the clients need little of the processors.
"""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from tabulate import tabulate

from sallyport.base.wire import Row
from sallyport.cli.benchmark.lists import post, receive
from tests.running_service import RunningService, running_service

from .console_load import figures, logins
from .console_store import Size, fill, set_up
from .radload import Load, compile_radload
from .settings import BenchmarkError, Settings

CONNECTIONS = 16
SIZE = Size(
    devices=10_000, stations=1_000, sessions=1_000, events=50_000, audit=1_000, users=10_000, instances=2_000,
    groups=50, people=1_000, credentials=100, wallets=10, agents=100, lockouts=10, bypass=10, clients=10, rules=5,
)  # fmt: skip
LISTS = (
    "/network_device/ListDevices",
    "/ad/GetAuthLog",
    "/api/v1/endpointUsers/listAllEpmUsers",
    "/api/v1/instances/list",
    "/api/v1/instanceGroup/listEndpointGroup",
)
SETTINGS = {"SALLYPORT_LOG_LOGINS": "false", "SALLYPORT_REJECT_DELAY_S": "0"}
"""Some logins have a wrong password, and the delay of their answers must not count."""
PAGES = (10, 10, 10, 100)
"""The numbers of entries of the pages."""


@dataclass
class Answered:
    """How many requests the connections have had answered, and the first error."""

    count: int = 0
    error: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def run(settings: Settings) -> str:
    """Fill the store, measure, and return the table."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), SIZE, settings)


def measure(directory: Path, size: Size, settings: Settings) -> str:
    """Do the same as `run` in an empty directory."""
    program = compile_radload(directory)
    with running_service(directory, SETTINGS, fresh=True) as service:
        domain_id = set_up(service, directory, size)
        service.stop()
        trio.run(fill, service.data_dir, domain_id, size)
        service.start()
        requests = _requests(service, domain_id)
        logins(service, program, 2)  # devices register at their first login
        rows = []
        for _ in range(settings.rounds):
            rows.append(["alone", *figures(logins(service, program, settings.seconds)), ""])
            load, rate = _beside(service, requests, program, settings.seconds)
            rows.append([f"beside {CONNECTIONS} connections", *figures(load), f"{rate:,.0f}"])
    headers = ["", "logins/s", "lost", "p50 ms", "p99 ms", "longest ms", "CPU µs each", "requests/s"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 7])


def _requests(service: RunningService, domain_id: int) -> Sequence[bytes]:
    """Return the octets of all requests."""
    made = list[bytes]()
    for size in PAGES:
        for path in LISTS:
            scope: Row = {"orgId": 1, "tenantId": 1} if path.startswith(("/network", "/ad")) else {}
            body = {**scope, "domainId": domain_id, "pageId": 1, "pageSize": size}
            made.append(post(path, body, service.token))
    return made


def _beside(service: RunningService, requests: Sequence[bytes], program: Path, seconds: float) -> tuple[Load, float]:
    """Measure logins beside the connections. Return them, and the answered requests in a second."""
    with _busy(service, requests) as answered:
        load = logins(service, program, seconds)
        return load, answered.count / seconds


@contextmanager
def _busy(service: RunningService, requests: Sequence[bytes]) -> Iterator[Answered]:
    """Keep the connections busy until the block ends. Raises BenchmarkError if a request was not answered with 200."""
    answered = Answered()
    threads = [
        threading.Thread(target=_guarded, args=(service.ports.http, [*requests[at:], *requests[:at]], answered))
        for at in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        answered.ended.set()
        for thread in threads:
            thread.join()
    if answered.error is not None:
        raise BenchmarkError(f"the API: {answered.error!r}")


def _guarded(port: int, requests: Sequence[bytes], answered: Answered) -> None:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            for request in cycle(requests):
                if answered.ended.is_set():
                    break
                connection.sendall(request)
                receive(connection)
                answered.count += 1
    except BaseException as error:
        answered.error = error

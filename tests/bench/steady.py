"""A mixed load on one service for ten minutes: logins, accounting, endpoint agents, directory imports, the API and
Prometheus. The benchmark shows whether the service grows meanwhile. Each line of the table covers a tenth of the time
and has the times of logins, the service's memory and its open files. The first tenth fills caches; the others should be
similar.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from tempfile import TemporaryDirectory

import httpx
import trio
from tabulate import tabulate

from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    ACCT_STATUS_TYPE,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    USER_NAME,
    push_attribute,
)
from sallyport.radius.packet import ACCOUNTING_REQUEST, encode_request
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service

from .agents import Fleet, enrol, live
from .child import SECRET
from .directory_file import ACCEPT, OVER, percentiles, write
from .lists import Tenant
from .settings import BenchmarkError, Settings

SECONDS = 600.0
PARTS = 10
SWITCHES = 50
STATIONS = 400
AGENTS = 100
ENTRIES = 5_000
LOGIN_PAUSE_S = 0.01
API_PAUSE_S = 0.05
SCRAPE_PAUSE_S = 5.0
START, INTERIM, STOP = 1, 3, 2
LISTS = (
    "/network_device/ListDevices",
    "/ad/GetAuthLog",
    "/ad/GetAllAdUsers",
    "/api/v1/instances/list",
    "/api/v1/audit/list",
)


@dataclass
class Work:
    """The work done so far. logins: the seconds of each login since the last line. error: the error that ended a
    worker.
    """

    done: threading.Event = field(default_factory=threading.Event)
    logins: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    error: BaseException | None = None

    def count(self, name: str) -> None:
        """Count one more."""
        self.counts[name] = self.counts.get(name, 0) + 1


def run(settings: Settings) -> str:
    """Return the table."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), seconds=SECONDS, agents=AGENTS, entries=ENTRIES)


def measure(directory: Path, *, seconds: float, agents: int, entries: int) -> str:
    """Return the table. directory: an empty directory. Raises BenchmarkError if an answer was wrong."""
    people = directory / "people.ldif"
    write(people, entries)
    with running_service(directory, {"SALLYPORT_REJECT_DELAY_S": "0"}, fresh=True) as service:
        tenant = _set_up(service)
        fleet = trio.run(enrol, service.ports.http, tenant, agents)
        work, rows = Work(), []
        with _working(work, service, tenant, fleet, people):
            for part in range(PARTS):
                began = time.monotonic()
                work.done.wait(seconds / PARTS)
                if work.error is not None:
                    raise BenchmarkError(f"it ended early: {work.error!r}")
                taken, work.logins = work.logins, []
                rate = f"{len(taken) / (time.monotonic() - began):,.0f}"
                memory, files = _memory_mib(service.process_id), _open_files(service.process_id)
                rows.append([f"{part + 1}", rate, *percentiles(taken), f"{memory:.1f}", f"{files}"])
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(work.counts.items()))
    head = ["tenth", "logins/s", "p50 ms", "p99 ms", "longest ms", "own MiB", "open files"]
    table = tabulate(rows, head, "github", disable_numparse=True, colalign=["right"] * len(head))
    return f"{seconds:,.0f} s with {agents} agents; beside the logins {counts}.\n\n{table}"


def _set_up(service: RunningService) -> Tenant:
    tenant = ("--org", "1", "--tenant", "1")
    domain_id = int(service.ok("domain", "add", "bench", *tenant).split()[-1])
    service.ok("user", "add", "ann", "--domain", "bench", "--password", "-", input="hello")
    client = ("client", "add", "bench", "--address", "127.0.0.1", "--secret", SECRET, "--domain", "bench")
    service.ok(*client, *tenant)
    return Tenant(1, domain_id, service.token)


@contextmanager
def _working(work: Work, service: RunningService, tenant: Tenant, fleet: Fleet, people: Path) -> Iterator[None]:
    """Run all workers, each in a thread of its own, until the block ends."""
    workers: tuple[Callable[[], None], ...] = (
        lambda: _log_in(work, service),
        lambda: _account(work, service),
        lambda: _call(work, service, tenant),
        lambda: _scrape(work, service),
        lambda: _import(work, service, people),
        lambda: trio.run(_agents, work, fleet),
    )
    threads = [threading.Thread(target=_worker, args=(work, each)) for each in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        work.done.set()
        for thread in threads:
            thread.join()


def _worker(work: Work, job: Callable[[], None]) -> None:
    try:
        job()
    except BaseException as error:
        work.error = error
        work.done.set()


def _log_in(work: Work, service: RunningService) -> None:
    """Send right and wrong passwords in turn, from many stations behind many switches."""
    number = 0
    with service.radius(SECRET) as client:
        while not work.done.wait(LOGIN_PAUSE_S):
            number += 1
            switch, station = f"switch-{number % SWITCHES}".encode(), _station(number)
            right = number % 10 != 0
            began = time.perf_counter()
            code = client.login("ann", "hello" if right else "wrong", NAS_IDENTIFIER=switch, CALLING_STATION_ID=station)
            work.logins.append(time.perf_counter() - began)
            if (code == ACCEPT) is not right:
                raise BenchmarkError(f"a login was answered by {code}")


def _account(work: Work, service: RunningService) -> None:
    """Send the accounting records of sessions that start, continue and stop."""
    number = 0
    with RadiusClient(service.ports.acct, SECRET) as client:
        while not work.done.wait(LOGIN_PAUSE_S):
            session = f"{token_bytes(4).hex()}".encode()
            number += 1
            for status in (START, INTERIM, STOP):
                attributes = {
                    NAS_IDENTIFIER: f"switch-{number % SWITCHES}".encode(),
                    CALLING_STATION_ID: _station(number),
                    USER_NAME: b"ann",
                    ACCT_SESSION_ID: session,
                    ACCT_STATUS_TYPE: status.to_bytes(4),
                }
                octets = b"".join(push_attribute(kind, value) for kind, value in attributes.items())
                client.exchange(encode_request(ACCOUNTING_REQUEST, number & 0xFF, client.secret, octets))
                number += 1
                work.count("accounting records")


def _call(work: Work, service: RunningService, tenant: Tenant) -> None:
    """Request lists, and add and delete a user."""
    scope = {"orgId": 1, "tenantId": tenant.number, "domainId": tenant.domain_id}
    with _http(service, tenant) as http:

        def post(path: str, **more: object) -> httpx.Response:
            answer = http.post(path, json={**scope, **more})
            if answer.status_code != 200:
                raise BenchmarkError(f"{path}: {answer.status_code} {answer.text[:200]}")
            work.count("calls of the API")
            return answer

        while not work.done.wait(API_PAUSE_S):
            for path in LISTS:
                post(path)
            made = post("/api/v1/endpointUsers/addEpmUserInfo", userName="bob", password=token_bytes(9).hex())
            user = {"epmUserId": int(made.json()["userId"])}
            path = "/api/v1/endpointUsers/deleteEpmUser"
            gone = http.request("DELETE", path, json={**scope, "epmUsers": [user]})
            if gone.status_code != 200:
                raise BenchmarkError(f"deleteEpmUser: {gone.status_code} {gone.text[:200]}")


def _scrape(work: Work, service: RunningService) -> None:
    with httpx.Client(trust_env=False, timeout=30) as http:
        while not work.done.wait(SCRAPE_PAUSE_S):
            http.get(f"http://127.0.0.1:{service.ports.http}/metrics").raise_for_status()
            work.count("scrapes")


def _import(work: Work, service: RunningService, people: Path) -> None:
    """Import the same file repeatedly. Each import compares all entries and writes few."""
    while not work.done.wait(1):
        job = service.call("directory.import_ldif", path=str(people), domain="bench")
        while (state := service.call("directory.job", job=job)["state"]) not in OVER:
            time.sleep(0.1)
        if state != "DONE":
            raise BenchmarkError(f"an import is {state}")
        work.count("imports")


async def _agents(work: Work, fleet: Fleet) -> None:
    async with trio.open_nursery() as nursery:
        for agent in fleet.agents:
            nursery.start_soon(live, fleet, agent)
        while not work.done.is_set():
            await trio.sleep(0.2)
        nursery.cancel_scope.cancel()
    work.counts["requests of agents"] = fleet.requests


def _http(service: RunningService, tenant: Tenant) -> httpx.Client:
    url, headers = f"http://127.0.0.1:{service.ports.http}", {"X-Authorization": tenant.token}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30)


def _station(number: int) -> bytes:
    return b"02-00-00-00-%02X-%02X" % divmod(number % STATIONS, 256)


def _memory_mib(process_id: int) -> float:
    """Return the private memory of the process in MiB, without mapped files."""
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))) / 1024


def _open_files(process_id: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process_id}/fd").iterdir())

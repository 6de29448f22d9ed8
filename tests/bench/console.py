"""The pages of the console with 1,000,000 devices, stations, sessions and logins. Each page is requested over HTTP by a
signed-in installation administrator. A page should take at most 100 ms in the service.

The second table has the times of 1,000 logins a second, in turns: alone, while people page through the slowest lists
and 20 live logs are open, and while the same people use another process. The p99 should be the same.
"""

import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import trio
from pyotp import TOTP, parse_uri
from tabulate import tabulate

from sallyport.cli.benchmark.processes import cpu_s
from sallyport.console.pages import ALL
from tests.running_service import RunningService

from . import console_load
from .console_load import Console
from .console_store import Size, fill, set_up
from .lists import tell
from .settings import BenchmarkError, Settings

AIM_MS = 100.0
REPEATS = 20
PASSWORD = "a horse and 42 batteries"
_TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')
USER = "emma.fischer-000034@example.org"
FILTERS: Mapping[str, tuple[str, ...]] = {
    "/devices": (
        "page=19800", "search=berlin", "search=berlin&page=200", "search=zzyzx", "search=hamburg-ap-123462",
        "search=10.20.30.40", "by=DEVICE_TYPE&is=Cisco+ISE", "by=DEVICE_NAME&is=tromso-core-router",
        "search=berlin&by=NAS_PORT_TYPE&is=Wireless",
    ),
    "/stations": ("page=20000", "search=02-00-0F-42", "search=zzyzx", "search=emma", "deviceId=500000"),
    "/sessions": (
        "page=20000", "live=true", "live=true&page=400", "live=false&page=19600", "search=zzyzx", "search=emma",
        f"userName={USER}", "userName=nobody", "deviceId=500000", "from=2020-01-01", "from=2020-01-01&page=20000",
    ),
    "/logins": (
        "search=emma", "search=zzyzx", f"user={USER}", "user=nobody", "device=switch-500000", "device=nothing",
        "station=02-00-00-00-07-00", "station=nothing", "appliedDecision=reject", "appliedDecision=challenge",
        "reason=wrong+password", "reason=wrong+code", "cursor=1893456000000000.9",
    ),
    "/people": ("kind=local&page=2000", "kind=local&search=becker", "kind=local&search=zzyzx", "kind=directory",
                "kind=directory&page=2000", "kind=directory&search=u77", "kind=directory&search=zzyzx"),
    "/lockouts": ("page=200",),
    "/bypass": ("page=2000", "search=printer+7", "search=zzyzx"),
    "/clients": ("page=20", "search=client-07"),
    "/directories/people": ("page=2000", "search=u77"),
    "/instances": ("page=2000", "filter=berlin", "filter=zzyzx"),
    "/endpoint-users": ("page=2000", "filter=becker"),
    "/endpoint-groups": ("page=40", "filter=oup-001"),
    "/agents": ("page=200",),
    "/agents/drift": ("page=180",),
    "/credentials": ("page=2000",),
    "/dids": ("page=2000", "kindText=issuer", "kindText=holder&page=2000", "search=holder+77", "search=zzyzx"),
    "/schemas": ("page=180", "search=badge+77", "search=zzyzx"),
    "/wallets": ("page=2000", "filter=user77"),
    "/keys": ("page=200",),
    "/audit": ("page=20000", "search=zzyzx", "search=emma", "actor=admin-7", "actor=nobody", "action=user.update",
               "action=nothing", "from=2020-01-01"),
    "/installation/audit": ("search=zzyzx", "actor=nobody", "action=user.update"),
    "/domains/{domain}/preview": ("days=1", "days=30"),
}  # fmt: skip
"""The filters and pages that are measured, in addition to each page without a filter."""


BUSY = ("/devices", "/stations", "/sessions", "/logins", "/people", "/audit", "/instances", "/lockouts")
"""The lists through which people page beside logins."""
LEFT_OUT = (
    "/logins/live", "/senders/sender", "/senders/register", "/roles/show", "/roles/set", "/roles/remove",
    "/reauthorizations/{run}", "/reauthorizations/{run}/stop", "/profiles/show", "/profiles/file", "/profiles/link",
    "/profiles/remove", "/authorities/{authority}", "/authorities/{authority}/change",
    "/authorities/{authority}/remove", "/server-certificates/check", "/server-certificates/remove",
    "/remembered/remove",
)  # fmt: skip
"""A stream, two pages about a sender without an answer, and the pages of a role, of a profile, of an authority, of a
server certificate, of a re-authorization and of a remembered station, which the benchmark's store does not have."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The measurements of an address. status: the status of the answers. times: the milliseconds of each answer.
    cpu_ms: the mean processor time of the service for an answer, which other programs on the machine do not change."""

    address: str
    status: int
    times: list[float]
    cpu_ms: float

    @property
    def p50(self) -> float:
        """The median without the first answer."""
        others = sorted(self.times[1:])
        return others[len(others) // 2]


def run(settings: Settings) -> str:
    """Fill the store, measure, and return Markdown. Raises BenchmarkError if a page has an error."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), Size(), settings)


def measure(directory: Path, size: Size, settings: Settings) -> str:
    """Do the same as `run` in an empty directory."""
    chosen = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOG_LOGINS": "false"}
    service, other = (RunningService(made, chosen, fresh=True) for made in (directory, directory / "other"))
    with _running(service):
        domain_id = set_up(service, directory, size)
    told = trio.run(fill, service.data_dir, domain_id, size)
    shutil.copytree(service.data_dir, other.data_dir)
    with ExitStack() as stack:
        own, copied = (stack.enter_context(_console(each, domain_id)) for each in (service, other))
        process_id, person = service.process_id, own.people[0]
        pages = [taken(person, process_id, each, settings.seconds / 4) for each in addresses(service, domain_id)]
        load = console_load.measure(own, copied, directory, settings)
    return f"{told}\n\n{table(pages)}\n\n{load}"


@contextmanager
def _console(service: RunningService, domain_id: int) -> Iterator[Console]:
    """Start a service, and yield its console with the people who page through the slowest lists."""
    lists = [f"{path}?domain={domain_id}{more}" for path in BUSY for more in ("", "&page=3")]
    with _running(service), ExitStack() as stack:
        people = [stack.enter_context(signed_in(service, f"person{number}")) for number in range(console_load.PEOPLE)]
        yield Console(service, people, lists)


@contextmanager
def _running(service: RunningService) -> Iterator[None]:
    service.start()
    try:
        yield
        service.stop()
    finally:
        service.kill()


@contextmanager
def signed_in(service: RunningService, name: str) -> Iterator[httpx.Client]:
    """Yield the browser of a new installation administrator, who acts in the tenant of the domain."""
    made = service.ok("admin", "add", name, "--password", "-", input=f"{PASSWORD}\n")
    code = TOTP(parse_uri(made.splitlines()[-1]).secret).now()  # type: ignore[union-attr]
    with httpx.Client(base_url=f"http://127.0.0.1:{service.ports.http}", trust_env=False, timeout=60) as http:
        _send(http, "/sign-in", name=name, password=PASSWORD, code=code)
        if tenant := re.search(r'name="tenant" value="(\d+)"', http.get("/tenants").text):  # not if there is only one
            _send(http, "/tenants", tenant=tenant[1])
        yield http


def _send(http: httpx.Client, path: str, **fields: str) -> None:
    token = _TOKEN.search(http.get(path).text)
    answer = http.post(path, data={"csrf": token[1] if token else "", **fields})
    if answer.status_code != 303:
        raise BenchmarkError(f"{path}: {answer.status_code} {answer.text[:500]}")


def addresses(service: RunningService, domain_id: int) -> list[str]:
    """Return the address of each page, and of the pages in FILTERS."""
    ids = _ids(service, domain_id)
    common = f"domain={domain_id}&user={USER}&station=nothing"
    found = []
    for page in (page for area in ALL for page in area.pages if page.path not in LEFT_OUT):
        template = page.path.replace("account/sessions/{session}", "account/sessions/{own}")
        template = template.replace("/agents/{instance}", "/agents/{agent}")
        path = re.sub(r"\{(\w+)\}", lambda name: str(ids[name[1]]), template)
        query = f"domain={domain_id}" if page.path in FILTERS else common
        found.append(f"{path}?{query}")
        found += [f"{path}?domain={domain_id}&{each}" for each in FILTERS.get(page.path, ())]
    return found


def _ids(service: RunningService, domain_id: int) -> dict[str, object]:
    """Return a value for each parameter of a path. The id of a row is one in the middle of the domain's rows."""

    def middle(table: str, where: str = f"domain_id = {domain_id}") -> int:
        half = f"select (min(id) + max(id)) / 2 from {table} where {where}"  # noqa: S608
        sql = f"select min(id) from {table} where {where} and id >= ({half})"  # noqa: S608
        return int(service.rows(sql)[0][0])

    return {
        "domain": domain_id,
        "event": middle("events"),
        "device": middle("devices"),
        "session": middle("sessions"),
        "client": middle("radius_clients", "true"),
        "rule": middle("login_rules"),
        "station": "02:00:00:00:00:01",
        "directory": middle("directories"),
        "job": middle("directory_jobs"),
        "instance": middle("endpoint_instances"),
        "agent": service.rows("select min(instance_id) from agents")[0][0],
        "group": middle("endpoint_groups"),
        "user": middle("endpoint_users"),
        "policy": middle("password_policies", "true"),
        "did": middle("dids"),
        "credential": middle("credentials"),
        "wallet": service.rows("select min(wallet_id) from credentials where domain_id = ?", domain_id)[0][0],
        "key": middle("api_keys"),
        "token": middle("access_tokens", "true"),
        "own": service.rows("select max(id) from console_sessions")[0][0],
        "node": "nothing",
        "org": 1,
        "tenant": 1,
    }


def taken(http: httpx.Client, process_id: int, address: str, seconds: float) -> Taken:
    """Measure an address. seconds: the longest time for it. Raises BenchmarkError if the page has an error."""
    times, deadline, used = list[float](), time.monotonic() + seconds, cpu_s(process_id)
    while len(times) < 2 or (len(times) < REPEATS and time.monotonic() < deadline):
        started = time.perf_counter()
        answer = http.get(address)
        times.append((time.perf_counter() - started) * 1000)
        if answer.status_code >= 500:
            raise BenchmarkError(f"{address}: {answer.status_code} {answer.text[:500]}")
    measured = Taken(address, answer.status_code, times, (cpu_s(process_id) - used) * 1000 / len(times))
    tell(f"{measured.p50:8.1f} ms, CPU {measured.cpu_ms:8.1f} ms, {answer.status_code} {address}")
    return measured


def table(pages: list[Taken]) -> str:
    """Return the slowest first."""
    rows = [
        [
            each.address,
            str(each.status),
            *(f"{ms:.1f}" for ms in (each.times[0], each.p50, max(each.times), each.cpu_ms)),
        ]
        for each in sorted(pages, key=lambda each: -each.p50)
    ]
    over = sum(each.p50 > AIM_MS for each in pages)
    headers = ["page", "status", "first ms", "p50 ms", "longest ms", "CPU ms"]
    made = tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 5])
    return f"{len(pages)} addresses, {over} of them over {AIM_MS:g} ms (aim: 0).\n\n{made}"

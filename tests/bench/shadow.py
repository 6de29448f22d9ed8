"""A company moves: 10,000 RADIUS clients are imported, its NPS too, and the log of a week is recorded and decided again
while the service answers logins. The benchmark measures each step, and the times of logins before, during and after. A
login waits for the writer of the store, so the longest one shows for how long an import has held it.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.areas.shadow import company
from tests.areas.shadow.files import write
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service

from .directory_file import logins as logins_while
from .directory_file import most_memory, percentiles
from .settings import BenchmarkError, Settings
from .spread import Aim, compared

LOGINS, USERS, CLIENTS = 100_000, 1_000, 10_000
BEFORE_S = 3.0
IN_DOMAIN = ("--domain", "default")
Turn = tuple[str, float, list[float]]


def run(settings: Settings) -> str:
    """Return the tables."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), logins=LOGINS, users=USERS, clients=CLIENTS)


def measure(directory: Path, *, logins: int, users: int, clients: int) -> str:
    """Return the tables. directory: an empty directory."""
    log, table = write(directory / "IN2611.log", company.week(logins, users)), _clients(directory, clients)
    with running_service(directory, fresh=True) as service:
        _move(service, directory, users)
        with service.radius(company.SECRET, source=company.VPN) as client, ThreadPoolExecutor(1) as pool:

            def turn(name: str, *command: str) -> Turn:
                began = time.monotonic()
                running = pool.submit(service.program, *command)
                taken = logins_while(client, lambda: not running.done())
                if running.result().returncode:
                    raise BenchmarkError(f"{name}: {running.result().stderr}")
                return name, time.monotonic() - began, taken

            report = ("shadow", "report", *IN_DOMAIN)
            columns = ("--map", "name=Name", "--map", "address=Address", "--map", "secret=Secret")
            turns = [
                _alone(client, "alone"),
                turn(f"{clients:,} clients are imported", "import", "csv", str(table), *columns, *IN_DOMAIN, "--yes"),
                turn("a log is recorded", *report, str(log), "--zone", "UTC", "--device", "192.0.2.255"),
                turn("its logins are decided again", *report),
                _alone(client, "alone, after both"),
            ]
        memory = most_memory(service)
    rows = [[name, f"{seconds:.1f}", str(len(taken)), *percentiles(taken)] for name, seconds, taken in turns]
    head = ["", "seconds", "logins", "p50 ms", "p99 ms", "longest ms"]
    _, seconds, taken = turns[3]
    aims = [
        Aim("longest login beside the import, ms", 250, [1000 * max(turns[1][2])], ".1f", most=True),
        Aim("p99 of logins beside the import, ms", 20, [float(percentiles(turns[1][2])[1])], ".1f", most=True),
        Aim(f"{logins:,} logins decided again, seconds", 60, [seconds], ".1f", most=True),
        Aim("p99 of logins meanwhile, ms", 20, [float(percentiles(taken)[1])], ".1f", most=True),
    ]
    size = log.stat().st_size / (1 << 20)
    told = f"{logins:,} logins of {users:,} people, {size:,.1f} MiB; the service had at most {memory:,.0f} MiB."
    return "\n\n".join([told, tabulate(rows, head, "github", disable_numparse=True), *compared(aims)])


def _move(service: RunningService, directory: Path, users: int) -> None:
    """Add the people, and import the export. Ann logs in meanwhile."""
    export = directory / "nps.xml"
    export.write_text(company.exported())
    service.ok("group", "add", company.GROUP, *IN_DOMAIN)
    names = ["ann", *company.people(users)]
    for name in names:
        service.add_user(name, "hello", "default")
    for at in range(0, len(names), 100):
        several = (word for name in names[at : at + 100] for word in ("--user", name))
        service.ok("group", "assign", company.GROUP, *IN_DOMAIN, *several)
    service.ok("import", "nps", str(export), *IN_DOMAIN, *company.DECISIONS, "--yes")


def _clients(directory: Path, number: int) -> Path:
    """Write a table of RADIUS clients."""
    path = directory / "clients.csv"
    rows = (f"c{each},10.{each >> 16}.{each >> 8 & 255}.{each & 255},secret of {each}" for each in range(number))
    path.write_text("\n".join(["Name,Address,Secret", *rows]))
    return path


def _alone(client: RadiusClient, name: str) -> Turn:
    until = time.monotonic() + BEFORE_S
    return name, BEFORE_S, logins_while(client, lambda: time.monotonic() < until)

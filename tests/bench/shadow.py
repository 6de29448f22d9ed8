"""A company moves from NPS: its export is imported, and the log of a week is recorded and decided again while the
service answers logins. The benchmark measures both, and the times of logins before, during and after.
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

LOGINS, USERS = 100_000, 1_000
BEFORE_S = 3.0
IN_DOMAIN = ("--domain", "default")
Turn = tuple[str, float, list[float]]


def run(settings: Settings) -> str:
    """Return the tables."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), logins=LOGINS, users=USERS)


def measure(directory: Path, *, logins: int, users: int) -> str:
    """Return the tables. directory: an empty directory."""
    log = write(directory / "IN2611.log", company.week(logins, users))
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
            turns = [
                _alone(client, "alone"),
                turn("a log is recorded", *report, str(log), "--zone", "UTC", "--device", "192.0.2.255"),
                turn("its logins are decided again", *report),
                _alone(client, "alone, after both"),
            ]
        memory = most_memory(service)
    rows = [[name, f"{seconds:.1f}", str(len(taken)), *percentiles(taken)] for name, seconds, taken in turns]
    head = ["", "seconds", "logins", "p50 ms", "p99 ms", "longest ms"]
    _, seconds, taken = turns[2]
    aims = [
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


def _alone(client: RadiusClient, name: str) -> Turn:
    until = time.monotonic() + BEFORE_S
    return name, BEFORE_S, logins_while(client, lambda: time.monotonic() < until)

"""The import of 100,000 people from an LDIF file into a service that answers logins meanwhile. The benchmark measures
the entries a second, the service's peak memory, and the times of logins before, during and after the import.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service

from .child import SECRET
from .settings import BenchmarkError, Settings

ENTRIES = 100_000
GROUPS = 100
OVER = {"DONE", "FAILED", "CANCELLED"}
BEFORE_S = 3.0
PAUSE_S = 0.005
ACCEPT = 2


def run(settings: Settings) -> str:
    """Return the table."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), entries=ENTRIES)


def measure(directory: Path, *, entries: int) -> str:
    """Return the table. directory: an empty directory."""
    file = directory / "people.ldif"
    write(file, entries)
    with running_service(directory, fresh=True) as service:
        tenant = ("--org", "1", "--tenant", "1")
        service.ok("domain", "add", "bench", *tenant)
        service.ok("user", "add", "ann", "--domain", "bench", "--password", "-", input="hello")
        client_line = ("client", "add", "bench", "--address", "127.0.0.1", "--secret", SECRET, "--domain", "bench")
        service.ok(*client_line, *tenant)
        with service.radius(SECRET) as client:
            until = time.monotonic() + BEFORE_S
            before = logins(client, lambda: time.monotonic() < until)
            first = imported(service, client, file)
            again = imported(service, client, file)
            until = time.monotonic() + BEFORE_S
            after = logins(client, lambda: time.monotonic() < until)
        memory = most_memory(service)
    rows = [
        ["no import", "", *percentiles(before)],
        ["first import", f"{entries / first[0]:,.0f}", *percentiles(first[1])],
        ["the same again", f"{entries / again[0]:,.0f}", *percentiles(again[1])],
        ["no import, after both", "", *percentiles(after)],
    ]
    head = ["", "entries a second", "logins p50 ms", "p99 ms", "longest ms"]
    table = tabulate(rows, head, "github", disable_numparse=True)
    size = file.stat().st_size / (1 << 20)
    return f"{entries:,} entries, {size:,.1f} MiB; the service had at most {memory:,.0f} MiB.\n\n{table}"


def write(file: Path, entries: int) -> None:
    """Write people, and groups that each have an equal share of them."""
    with file.open("w") as ldif:
        for number in range(entries):
            ldif.write(
                f"dn: uid=u{number},ou=Staff,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: u{number}\n"
                f"cn: Anna Example {number}\nsn: Example\nmail: u{number}@example.org\ntitle: Engineer\n"
                f"telephoneNumber: +49 30 {number:06}\nentryUUID: 00000000-0000-4000-8000-{number:012x}\n\n"
            )
        for group in range(GROUPS):
            ldif.write(f"dn: cn=g{group},dc=example,dc=org\nobjectClass: groupOfNames\ncn: g{group}\n")
            for number in range(group, entries, GROUPS):
                ldif.write(f"member: uid=u{number},ou=Staff,dc=example,dc=org\n")
            ldif.write("\n")


def imported(service: RunningService, client: RadiusClient, file: Path) -> tuple[float, list[float]]:
    """Return the time of an import and of the logins meanwhile, in seconds. Raises BenchmarkError if the import
    failed.
    """
    started = time.monotonic()
    job = service.call("directory.import_ldif", path=str(file), domain="bench")
    taken = logins(client, lambda: service.call("directory.job", job=job)["state"] not in OVER)
    seconds, state = time.monotonic() - started, service.call("directory.job", job=job)
    if state["state"] != "DONE":
        raise BenchmarkError(f"the import is {state['state']}: {state['message']}")
    return seconds, taken


def logins(client: RadiusClient, continues: Callable[[], bool]) -> list[float]:
    """Send logins, one after the other, and return the time of each in seconds."""
    taken = list[float]()
    while continues():
        for _ in range(20):
            started = time.perf_counter()
            if client.login("ann", "hello") != ACCEPT:
                raise BenchmarkError("a login was not accepted")
            taken.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)
    return taken


def percentiles(seconds: list[float]) -> list[str]:
    """Return p50, p99 and the maximum in milliseconds."""
    ordered = sorted(seconds) or [0.0]
    return [f"{1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))]:.1f}" for part in (0.5, 0.99, 1)]


def most_memory(service: RunningService) -> float:
    """Return the peak memory of the service in MiB, without the child process that reads the file."""
    status = Path(f"/proc/{service.process_id}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024

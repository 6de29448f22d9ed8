"""An OpenLDAP directory of 100,000 people. The benchmark measures how fast the service reads them, beside `ldapsearch`
with the same attributes, entries and page size. It also measures how fast the service imports them, from the request to
the last row in its store.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import trio
from tabulate import tabulate

from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.reader import PAGE, LdapReader, LdapSource
from sallyport.areas.directory.reading.search import ACCOUNTS, CONTENT, IDENTITY, everything
from sallyport.areas.directory.reading.server import Server
from sallyport.base.clock import now_us
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from tests.peers.authority import Authority
from tests.peers.programs import find
from tests.peers.slapd import BASE, SERVICE, SERVICE_PASSWORD, STAFF, Slapd

from .child import child_process, wait_until
from .lists import add_tenant, environ_of
from .sallyport import PROGRAM, is_ready
from .settings import BenchmarkError, Settings

ENTRIES = 100_000
GROUPS = 100
LIMIT_S = 3600.0


def run(settings: Settings) -> str:
    """Return the table."""
    if not Path(find("slapd")).is_absolute() or not Path(find("ldapsearch")).is_absolute():
        raise BenchmarkError("slapd and ldap-utils are not installed")
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), entries=ENTRIES, rounds=settings.rounds)


def measure(directory: Path, *, entries: int, rounds: int) -> str:
    """Return the table. directory: an empty directory. The best round counts."""
    rows = []
    with populated(directory, entries) as server:
        searched = max(_rate(_searched, server, entries) for _ in range(rounds))
        rows.append(["`ldapsearch`", f"{searched:,.0f}", "1.00", ""])
        for label, full in (("everything", True), ("what has changed: nothing", False)):
            told = [_read(server, full=full) for _ in range(rounds)]
            if any(each["entries"] < entries for each in told):
                raise BenchmarkError(f"the reader found {told}, of {entries}")
            rate = max(each["entries"] / each["seconds"] for each in told)
            peak = max(each["peak_mib"] for each in told)
            rows.append([f"Sallyport's reader, {label}", f"{rate:,.0f}", f"{rate / searched:.2f}", f"{peak:,.0f} MiB"])
        rate, peak = _imported(directory, server, entries)
        rows.append(["Sallyport, into its store", f"{rate:,.0f}", f"{rate / searched:.2f}", f"{peak:,.0f} MiB"])
    return tabulate(rows, ["who", "entries a second", "of ldapsearch", "peak memory"], tablefmt="pipe")


@contextmanager
def populated(directory: Path, entries: int) -> Iterator[Slapd]:
    """Run a directory with `entries` people and a hundred groups. Each group has a hundredth of the people."""
    (directory / "slapd").mkdir()
    server = Slapd(directory / "slapd", Authority("The directory's CA"))
    try:
        server.start()
        server.populate()
        server.stop()
        ldif = directory / "people.ldif"
        with ldif.open("w") as file:
            file.writelines(_person(number) for number in range(entries))
            file.writelines(_group(number, entries) for number in range(GROUPS))
        command = [find("slapadd"), "-q", "-f", server.directory / "slapd.conf", "-l", ldif]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
        server.start()
        yield server
    finally:
        server.stop()


def _person(number: int) -> str:
    return f"""dn: uid=u{number},{STAFF}
objectClass: inetOrgPerson
uid: u{number}
cn: Person {number}
sn: Person
givenName: Number {number}
displayName: Person {number}
mail: u{number}@example.com
telephoneNumber: +1 555 {number:06}
title: Engineer
departmentNumber: {number % 97}
l: Town {number % 31}

"""


def _group(number: int, entries: int) -> str:
    members = "".join(f"member: uid=u{each},{STAFF}\n" for each in range(number, entries, GROUPS))
    return f"dn: cn=group {number},{BASE}\nobjectClass: groupOfNames\ncn: group {number}\n{members}\n"


def _rate(work: Callable[[Slapd], int], server: Slapd, entries: int) -> float:
    began = time.monotonic()
    found = work(server)
    if found < entries:
        raise BenchmarkError(f"ldapsearch found {found} of {entries}")
    return found / (time.monotonic() - began)


def _searched(server: Slapd) -> int:
    command = [
        find("ldapsearch"), "-x", "-LLL", "-H", server.url, "-D", SERVICE, "-w", SERVICE_PASSWORD, "-b", BASE,
        "-E", f"pr={PAGE}/noprompt", everything(ACCOUNTS), *IDENTITY, *CONTENT,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    return done.stdout.count(b"\ndn:")


def _read(server: Slapd, *, full: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.directory", server.url, "full" if full else "changes"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _imported(directory: Path, server: Slapd, entries: int) -> tuple[float, float]:
    """Return the entries a second of a service's first import, and the service's peak memory in MiB. The child process
    that prepares the file is not included.
    """
    environ = environ_of(directory / "data")
    tenant = add_tenant(environ, directory, 1)
    address, output = environ["SALLYPORT_HTTP_BIND"], directory / "log"
    with (
        child_process([PROGRAM, "serve"], directory=directory, output=output, environment=environ) as process,
        httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=60) as http,
    ):
        wait_until(lambda: is_ready(int(address.rpartition(":")[2])), process, output, seconds=60)
        http.headers["X-Authorization"] = tenant.token
        where = {"domainId": tenant.domain_id, "directoryName": "hq"}
        account = {"bindDN": SERVICE, "bindPassword": SERVICE_PASSWORD}
        _post(http, "/api/v1/saveDirectoryConfig", {**where, "appUrl": server.url, "baseDN": BASE, **account})
        began = time.monotonic()
        _post(http, "/api/v1/directory/sync", where)
        while (job := _post(http, "/api/v1/getImportStatus", {"DirectoryName": "hq"})["jobs"][0])["endedAt"] == "":
            if time.monotonic() > began + LIMIT_S:
                raise BenchmarkError("the import is not over in an hour")
            time.sleep(0.1)
        if job["state"] != "DONE" or job["counts"]["added"] < entries:
            raise BenchmarkError(f"the import: {job}")
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        return job["counts"]["added"] / (time.monotonic() - began), peak


def _post(http: httpx.Client, path: str, body: Mapping[str, object]) -> Any:
    answer = http.post(path, json=body)
    if answer.status_code != 200:
        raise BenchmarkError(f"{path}: {answer.status_code} {answer.text}")
    return answer.json()


def main() -> None:
    """Run in a process of its own, read the directory once, and print the measurements as JSON."""
    _, url, how = sys.argv
    # earlier than every change
    cursor = json.dumps(["time", now_us() // 1_000_000 + 86_400])
    source = LdapSource((Server(url, start_tls=False),), BASE, Account(SERVICE, SERVICE_PASSWORD))

    async def read() -> int:
        found = 0
        async with LdapReader(Egress(ANYWHERE), now_us).read(source, cursor, full=how == "full") as batches:
            async for batch in batches:
                found += len(batch.entries)
        return found

    began = time.monotonic()
    entries = trio.run(read)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"entries": entries, "seconds": time.monotonic() - began, "peak_mib": peak}))


if __name__ == "__main__":
    main()

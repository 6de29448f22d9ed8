"""A service with a data directory of its own on loopback, which lives as long as the measurement.

`sallyport serve` runs in a child process. The commands that set it up use its control socket, as an operator's commands
do. It shares neither data, settings nor the master key with an installation on the same machine.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.base.errors import NotFound, StartError
from sallyport.base.wire import Row
from sallyport.cli.benchmark.traffic import HOST
from sallyport.cli.connection import Connection
from sallyport.cli.line import Line
from sallyport.settings.settings import Settings
from sallyport.settings.values import PREFIX, environment_name

USERS: Final = 100
READY_S: Final = 180.0
STOP_S: Final = 20.0
KNOWN: Final = 20
"""Number of commands that must find the domain in a row, because the workers take them in any order."""
SCOPE: Final[Row] = {"orgId": 1, "tenantId": 1}
DOMAIN: Final = "bench"
_SERVE: Final = (
    "import ctypes, runpy, signal; "
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM); "  # PR_SET_PDEATHSIG (prctl(2))
    "runpy.run_module('sallyport', run_name='__main__')"
)
"""The program of the service, which the kernel ends with this process: SIGKILL leaves no service behind."""
EVENTS_MIB: Final = 1024
"""Limit of the recorded events and accounting records: the folder for temporary files may be in memory."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running service. secret: of the RADIUS client 127.0.0.1. users: names and passwords in octets."""

    process_id: int
    authentication: int
    accounting: int
    http: int
    domain_id: int
    token: str
    secret: bytes
    users: tuple[tuple[bytes, bytes], ...]


@contextmanager
def throw_away_service(directory: Path, *, database_url: str, workers: int) -> Iterator[Target]:
    """Run a service in an empty directory, with a domain, users and a RADIUS client, until the block ends.

    database_url: of an empty PostgreSQL database; empty for the embedded database. Raises StartError with the end of
    the log if the service does not start.
    """
    environ = _environment(directory, database_url, workers)
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  a fixed command
            [sys.executable, "-c", _SERVE, "serve"],
            env=environ,
            cwd=directory,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        ports = _ports(process, log)
        settings = Settings(data_dir=directory / "data", database=database_url)
        with closing(Connection(settings=settings)) as connection:
            yield _set_up(Line(lambda: connection), process.pid, ports)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(directory: Path, database_url: str, workers: int) -> Mapping[str, str]:
    """Return the caller's environment with the settings of this service and without other settings of Sallyport."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    settings = {
        "data_dir": str(directory / "data"),
        "http_bind": f"{HOST}:0",
        "radius_auth_bind": f"{HOST}:0",
        "radius_acct_bind": f"{HOST}:0",
        "disk_reserve_mib": "0",
        "event_limit_mib": str(EVENTS_MIB),
        "log_format": "json",
        "log_logins": "false",
        "workers": str(workers),
        **({"database": database_url} if database_url else {}),
    }
    return kept | {environment_name(name): value for name, value in settings.items()}


def _ports(process: "subprocess.Popen[bytes]", log: Path) -> Mapping[str, int]:
    """Wait until the service is ready, and return its ports by the names in its log."""
    deadline = time.monotonic() + READY_S
    while True:
        text = log.read_text(errors="replace")
        for line in text.splitlines():
            if '"event": "ready"' in line and line.endswith("}"):
                found = json.loads(line)
                return {name: int(found[name][0].rpartition(":")[2]) for name in ("radius_auth", "radius_acct", "http")}
        if process.poll() is not None or time.monotonic() > deadline:
            raise StartError(f"the service of the measurement did not start\n{text[-2000:]}")
        time.sleep(0.05)


def _wait_for_domain(line: Line) -> None:
    """Wait until every worker knows the domain: another worker than the one that added it may get the next command."""
    deadline = time.monotonic() + READY_S
    seen = 0
    while seen < KNOWN:
        try:
            line.run("/network_device/ListDevices", SCOPE, domain=DOMAIN)
            seen += 1
        except NotFound:
            seen = 0
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _set_up(line: Line, process_id: int, ports: Mapping[str, int]) -> Target:
    users = tuple((b"user%d" % number, b"pass%d" % number) for number in range(USERS))
    domain = line.run("/ad/AddDomain", {**SCOPE, "domainName": DOMAIN})
    _wait_for_domain(line)
    for name, password in users:
        body: Row = {"userName": name.decode(), "password": {"hex": password.hex()}}
        line.run("/api/v1/endpointUsers/addEpmUserInfo", body, domain=DOMAIN)
    client = line.run("/network_device/AddClient", {**SCOPE, "name": DOMAIN, "address": HOST}, domains=[DOMAIN])
    line.call("cert.init", ca_name="sallyport bench", hosts=["bench.invalid"], key_type="rsa", send_root=False)
    token = line.row("token.create", name=DOMAIN, org=1, tenant=1)
    return Target(
        process_id,
        ports["radius_auth"],
        ports["radius_acct"],
        ports["http"],
        int(str(domain["domainId"])),
        str(token["token"]),
        str(client["secret"]).encode(),
        users,
    )

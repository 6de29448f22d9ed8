"""Sallyport as a server under test: the installed command with a data directory of its own, set up with the commands
that an operator uses.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType

import httpx

from sallyport.base.wire import JSON, Row
from tests.ports import free_port
from tests.running_service import controlled

from .child import SECRET, Running, child_process, wait_until
from .settings import BenchmarkError

PROGRAM = Path(sys.executable).with_name("sallyport")
TENANT = ("--org", "1", "--tenant", "1")
RULES = 20
EVENTS = "select count(*) from events"


def environment(data: Path, *, http: int, authentication: int, accounting: int) -> dict[str, str]:
    """Return the caller's environment with the settings of this server and without any other SALLYPORT_ setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SALLYPORT_")}
    return kept | {
        "SALLYPORT_DATA_DIR": str(data),
        "SALLYPORT_EGRESS": "default, 127.0.0.1/32",
        "SALLYPORT_LOG_LOGINS": "false",  # the default of FreeRADIUS
        "SALLYPORT_HTTP_BIND": f"127.0.0.1:{http}",
        "SALLYPORT_RADIUS_AUTH_BIND": f"127.0.0.1:{authentication}",
        "SALLYPORT_RADIUS_ACCT_BIND": f"127.0.0.1:{accounting}",
    }


def is_ready(http: int) -> bool:
    """Return whether /readyz answers 200."""
    try:
        return httpx.get(f"http://127.0.0.1:{http}/readyz", timeout=2, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def command(arguments: Sequence[str], environ: Mapping[str, str], directory: Path, *, given: str = "") -> str:
    """Run `sallyport ARGUMENTS` beside the service and return its standard output.

    Raises BenchmarkError with its standard error.
    """
    done = subprocess.run(
        [str(PROGRAM), *arguments],
        input=given,
        env=environ,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise BenchmarkError(f"sallyport {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout.strip()


def set_up(environ: Mapping[str, str], directory: Path, *, users: int) -> None:
    """Add a domain, the RADIUS client and the users. The domain stays in monitor mode, which is the default."""
    command(["db", "migrate"], environ, directory)
    command(["domain", "add", "bench", *TENANT], environ, directory)
    client = ["client", "add", "bench", "--address", "127.0.0.1", "--secret", SECRET, "--domain", "bench"]
    command([*client, *TENANT], environ, directory)
    data = Path(environ["SALLYPORT_DATA_DIR"])
    for number in range(users):  # not by commands, because each one spends a second on starting Python
        user = {"userName": f"user{number}", "password": {"hex": f"pass{number}".encode().hex()}}
        asked = {"path": "/api/v1/endpointUsers/addEpmUserInfo", "body": user, "domain": "bench"}
        controlled(data, asked)


def add_rules(data: Path) -> None:
    """Add RULES login rules to the domain, each with a condition about the request. None of them matches the load."""
    conditions: Sequence[Mapping[str, JSON]] = (
        {"ssids": ["guests", "lab"]},
        {"ports": ["GigabitEthernet1/0/*", "Tengig*/1/?"]},
        {"methods": ["mab", "eap-tls"], "realms": ["partner.example"]},
        {"attributes": ["NAS-Identifier~core-*", "Framed-Protocol=PPP"]},
        {"tags": ["site=Berlin"]},
    )
    for number in range(RULES):
        rule = {"name": f"rule {number}", "action": "mfa_required", "kinds": ["user"]}
        body: Row = {**rule, **conditions[number % len(conditions)], "media": ["Wireless"]}
        controlled(data, {"path": "/ad/AddLoginRule", "body": body, "domain": "bench"})


def count_events(database: Path) -> int:
    """Return the number of answers in the store, which is read like by any other reader of the file."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute(EVENTS).fetchone()[0])


@contextmanager
def sallyport(
    directory: Path,
    *,
    users: int,
    name: str = "Sallyport",
    settings: Mapping[str, str] = MappingProxyType({}),
    count: Callable[[], int] | None = None,
    has_rules: bool = False,
) -> Iterator[Running]:
    """Run `sallyport serve` in an empty directory with all of its files.

    settings: further environment variables. count: returns the events in the store; None for the embedded database.
    has_rules: whether the domain has the rules of `add_rules`.
    """
    http, authentication, accounting = free_port(), free_port(), free_port()
    data, output = directory / "data", directory / "output"
    environ = environment(data, http=http, authentication=authentication, accounting=accounting) | dict(settings)
    if not PROGRAM.exists():
        raise BenchmarkError("the command sallyport is not installed beside this Python: tests/setup")
    with child_process([str(PROGRAM), "serve"], output=output, environment=environ, directory=directory) as process:
        wait_until(lambda: is_ready(http), process, output, seconds=30)
        set_up(environ, directory, users=users)
        if has_rules:
            add_rules(data)
        yield Running(
            name=name,
            port=authentication,
            process_id=process.pid,
            count_events=count or (lambda: count_events(data / "sallyport.db")),
            accounting_port=accounting,
        )

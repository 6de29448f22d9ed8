"""Tests of shadow mode beside a FreeRADIUS that decides logins, and copies its requests with the module replicate.

The module linelog writes the log of FreeRADIUS with the format of docs/guides/shadow.md.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.docs.commands import ROOT
from tests.peers.freeradius import NAS_AND_HOME, running_freeradius
from tests.peers.programs import needs, radclient
from tests.ports import free_port
from tests.running_service import RunningService, running_service
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs("freeradius", "radclient")]

SENDER, COPY_SECRET, NAS_SECRET = "127.0.0.9", "between-freeradius-and-sallyport", "between-nas-and-freeradius"
PASSWORD, WRONG = "correct horse battery", "wrong horse battery"
TOM = "EXAMPLE\\tom"
NAS, STATION = "127.0.0.1", "02-00-00-00-00-01"
GUIDE = ROOT / "docs/guides/shadow.md"
DOMAIN = ("--domain", "default")
UNTOUCHED = (
    *("events", "answers", "challenges", "stepups", "prompt_pauses", "lockouts", "sessions", "accounting_records"),
    *("devices", "device_history", "stations", "unknown_stations", "remembered_stations", "bypass_stations"),
    "radius_clients",
)
"""The tables of what logins count, prompt, learn and leave. radius_clients has the latches of signatures."""

RADIUSD = """\
prefix = {directory}
logdir = {directory}
run_dir = {directory}
libdir = /usr/lib/freeradius
pidfile = {directory}/pid
log {{
    destination = stdout
}}
modules {{
    pap {{
    }}
    replicate {{
    }}
    always reject {{
        rcode = reject
    }}
    always ok {{
        rcode = ok
    }}
    linelog {{
        filename = {directory}/logins.log
        {format}
    }}
}}
server old {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    listen {{
        type = acct
        ipaddr = 127.0.0.1
        port = {acct_port}
    }}
    authorize {{
        update control {{
            &Cleartext-Password := "{password}"
        }}
        {before}
        if (&User-Name == "carl") {{
            reject
        }}
        pap
    }}
    authenticate {{
        pap
    }}
    post-auth {{
        {accepted}
        linelog
        Post-Auth-Type REJECT {{
            {rejected}
            linelog
        }}
    }}
    preacct {{
        {before}
    }}
    accounting {{
        ok
    }}
}}
"""


def snippet(first: str) -> str:
    """Return the block of the guide that contains a text."""
    blocks: list[str] = re.findall(r"```text\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return next(each for each in blocks if first in each)


BEFORE = snippet("Replicate-To-Realm := sallyport")
AFTER = snippet("Reply-Message := ")


class OldServer:
    """A running FreeRADIUS."""

    def __init__(self, directory: Path, port: int, acct_port: int) -> None:
        self._directory = directory
        self._ports = {"auth": port, "acct": acct_port}
        self.log = directory / "logins.log"

    def login(self, user: str, password: str = PASSWORD, station: str = STATION) -> bool:
        """Log in at the NAS, and return whether FreeRADIUS has accepted."""
        given = (f'User-Password = "{password}"', "Message-Authenticator = 0x00", "NAS-Port-Type = Virtual")
        return "Received Access-Accept" in self._send("auth", user, station, *given)

    def start(self, user: str) -> None:
        """Start a session at the NAS."""
        told = self._send("acct", user, STATION, "Acct-Status-Type = Start", f'Acct-Session-Id = "{user}"')
        assert "Received Accounting-Response" in told, told

    def _send(self, kind: str, user: str, station: str, *more: str) -> str:
        own = (f'User-Name = "{user}"', f"NAS-IP-Address = {NAS}", f'Calling-Station-Id = "{station}"')
        return radclient(self._directory, kind, f"127.0.0.1:{self._ports[kind]}", NAS_SECRET, (*own, *more))


@contextmanager
def old_server(directory: Path, service: RunningService, *, answers: bool) -> Iterator[OldServer]:
    """Yield FreeRADIUS. answers: whether it copies requests after authentication, instead of before."""
    port, acct_port = free_port(), free_port()
    accepted, _, rejected = AFTER.removeprefix("post-auth {").partition("Post-Auth-Type REJECT {")
    configuration = (NAS_AND_HOME + RADIUSD).format(
        directory=directory, port=port, acct_port=acct_port, auth=service.ports.auth, acct=service.ports.acct,
        source=SENDER, home_secret=COPY_SECRET, nas_secret=NAS_SECRET, password=PASSWORD, format=snippet("format ="),
        before="" if answers else BEFORE, accepted=accepted if answers else "",
        rejected=rejected.rsplit("}", 2)[0] if answers else "",
    )  # fmt: skip
    with running_freeradius(directory, configuration):
        yield OldServer(directory, port, acct_port)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that has the old server as a shadow client, and a rule that admits the users."""
    settings = {"SALLYPORT_METRICS_BIND": "127.0.0.1:0", "SALLYPORT_REJECT_DELAY_S": "0"}
    with running_service(tmp_path_factory.mktemp("service"), settings) as service:
        service.add_client("freeradius", SENDER, COPY_SECRET, shadow=True)
        service.add_client("vpn", NAS, "a secret of the NAS")
        for name in ("ann", "bob", "carl", "dora"):
            service.add_user(name, PASSWORD)
        service.add_rule("default", name="staff", action="allow", everyone=True)
        yield service


def recorded(service: RunningService) -> list[tuple[Any, ...]]:
    """Return what the service has recorded."""
    return service.rows("select user_name, kind, answer from shadow_logins order by id")


def results(service: RunningService) -> dict[str, tuple[str, str]]:
    """Return the result and the reason of each login, by user."""
    found = dict[str, tuple[str, str]]()
    for result in ("same", "laxer", "stricter", "unknown"):
        done = service.cli("shadow", "report", *DOMAIN, "--result", result, "--json")
        found |= {each["user"]: (result, each["reason"]) for each in json.loads(done.stdout)["cases"]}
    return found


def counted(service: RunningService) -> dict[str, str]:
    """Return all metrics about logins, devices, sessions and lock-outs."""
    lines = service.request("GET", "/metrics").text.splitlines()
    pattern = r"sallyport_(radius|client|first|mfa|lock|device|session|accounting|inventory|tagged|stepup)\w+"
    found = (line.rpartition(" ") for line in lines if re.match(pattern, line))
    return {name: value for name, _, value in found if "_created" not in name}


def test_copies_are_paired_with_the_log(service: RunningService, tmp_path: Path) -> None:
    """A copy is unknown until the log of FreeRADIUS, or the start of a session, has its answer. FreeRADIUS gets no
    answer, and nothing of a login is counted, learned or kept: more wrong passwords than a lock-out needs change
    nothing, and no password is in the files of the service. The number of answers is one of the metrics."""
    service.ok("bypass", "add", STATION, *DOMAIN)
    before = {table: service.rows(f"select * from {table}") for table in UNTOUCHED}  # noqa: S608
    metrics, clients = counted(service), service.clients()
    with old_server(tmp_path, service, answers=False) as old:
        assert old.login("ann")
        assert not any(old.login("bob", WRONG, f"02-00-00-00-01-{number:02}") for number in range(12))
        assert not old.login("carl")
        assert not old.login(STATION, STATION)
        assert old.login("dora") and old.login("EXAMPLE\\\\tom")
        old.start("dora")
        eventually(lambda: ("dora", "copy", "accept") in recorded(service) and len(recorded(service)) == 17)
        assert [each[:2] for each in recorded(service)].count(("bob", "copy")) == 12
        assert {name: each[0] for name, each in results(service).items()} == {
            "ann": "unknown", "bob": "unknown", "carl": "unknown", "dora": "same", STATION: "unknown", TOM: "unknown",
        }  # fmt: skip
        told = service.cli("shadow", "report", str(old.log), *DOMAIN)
        assert "17 logins, 0 of them new" in told.stderr, told.stderr
        assert {name: each[0] for name, each in results(service).items()} == {
            "ann": "same", "bob": "same", "carl": "unknown", "dora": "same", STATION: "same", TOM: "stricter",
        }  # fmt: skip
    assert {table: service.rows(f"select * from {table}") for table in UNTOUCHED} == before  # noqa: S608
    assert (counted(service), service.clients()) == (metrics, clients)
    octets = service.stored() + service.log().encode()
    assert PASSWORD.encode() not in octets and WRONG.encode() not in octets


def test_copies_after_authentication_have_the_answer(service: RunningService, tmp_path: Path) -> None:
    """They need no log."""
    service.ok("shadow", "clear", *DOMAIN)
    with old_server(tmp_path, service, answers=True) as old:
        assert old.login("ann") and not old.login("bob", WRONG)
        wanted = [("ann", "answered", "accept"), ("bob", "answered", "reject")]
        eventually(lambda: sorted(recorded(service)) == wanted)
    assert results(service)["ann"] == ("same", "")

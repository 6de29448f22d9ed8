"""Tests of FreeRADIUS as a NAS that accepts Disconnect and CoA requests. It verifies both authenticators and reads the
attributes. radclient sends the accounting for the sessions, from the address on which FreeRADIUS listens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.freeradius import running_freeradius
from tests.peers.programs import needs, radclient
from tests.ports import free_port
from tests.running_service import RunningService, running_service

SECRET = "between-nas-and-service"
RADIUSD = """\
prefix = {directory}
logdir = {directory}
run_dir = {directory}
pidfile = {directory}/pid
log {{
    destination = stdout
}}
security {{
    allow_vulnerable_openssl = yes    # the check of the library's version; nothing here speaks TLS
}}
client service {{
    ipaddr = 127.0.0.1
    secret = {secret}
    require_message_authenticator = yes
}}
modules {{
    always ok {{
        rcode = ok
    }}
    always reject {{
        rcode = reject
    }}
}}
server nas {{
    listen {{
        type = coa
        ipaddr = 127.0.0.1
        port = {port}
    }}
    recv-coa {{
        if (&Acct-Session-Id == "gone") {{
            update reply {{
                &Error-Cause := Session-Context-Not-Found
            }}
            reject
        }}
        ok
    }}
}}
"""

pytestmark = [pytest.mark.peer, needs("freeradius", "radclient")]


@dataclass(frozen=True)
class Nas:
    """FreeRADIUS, and the service to which it sends accounting.

    output: the log of FreeRADIUS.
    """

    service: RunningService
    directory: Path
    output: Path

    def session(self, name: str, *facts: str) -> int:
        """Return the id of a new session."""
        server = f"127.0.0.1:{self.service.ports.acct}"
        start = ("Acct-Status-Type = Start", f'Acct-Session-Id = "{name}"', 'NAS-Identifier = "radiusd"', *facts)
        assert "Received Accounting-Response" in radclient(self.directory, "acct", server, SECRET, start)
        found: list[dict[str, Any]] = self.service.sessions()
        return next(int(each["sessionId"]) for each in found if each["acctSessionId"] == name)

    def disconnect(self, session: int) -> dict[str, Any]:
        """Return the result of a DisconnectSession."""
        (result,) = self.service.disconnect(session)
        return result

    def change(self, session: int, attributes: list[dict[str, str]]) -> dict[str, Any]:
        """Return the result of a ChangeSession."""
        body = {"sessionId": session, "replyAttributes": attributes}
        (result,) = self.service.run("/network_device/ChangeSession", body, domain="default")["results"]
        return dict(result)

    def log(self) -> str:
        """Return FreeRADIUS's output so far."""
        return self.output.read_text(errors="replace")


@pytest.fixture(scope="module")
def nas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nas]:
    """Yield both, ready."""
    directory = tmp_path_factory.mktemp("raddb")
    port = free_port()
    configuration = RADIUSD.format(directory=directory, port=port, secret=SECRET)
    with running_service(tmp_path_factory.mktemp("service")) as service, running_freeradius(directory, configuration):
        service.add_client("radiusd", "127.0.0.1", SECRET, "default", coaPort=port)
        yield Nas(service, directory, directory / "output")


def test_freeradius_acknowledges_a_disconnect(nas: Nas) -> None:
    """FreeRADIUS acknowledges the request, and has read the session's attributes."""
    session = nas.session("one", 'User-Name = "bob"', 'Calling-Station-Id = "02-00-00-00-00-01"')
    result = nas.disconnect(session)
    assert (result["outcome"], result["errorCause"]) == ("ack", None), nas.log()[-3000:]
    request = nas.log().rpartition("Received Disconnect-Request")[2].partition("Sent")[0]
    for line in (
        'User-Name = "bob"', 'Acct-Session-Id = "one"', 'Calling-Station-Id = "02-00-00-00-00-01"',
        'NAS-Identifier = "radiusd"', "Event-Timestamp = ", "Message-Authenticator = ",
    ):  # fmt: skip
        assert line in request


def test_a_disconnect_nak(nas: Nas) -> None:
    """A Disconnect-NAK's Error-Cause is returned with its name."""
    result = nas.disconnect(nas.session("gone", 'User-Name = "bob"'))
    assert (result["outcome"], result["errorCause"]) == ("nak", 503)
    assert result["errorText"] == "Session-Context-Not-Found"


def test_freeradius_receives_the_attributes_of_a_change(nas: Nas) -> None:
    """Attributes of the RFCs and of vendors arrive with their values."""
    attributes = [
        {"name": "Filter-Id", "value": "guests"},
        {"name": "Session-Timeout", "value": "600"},
        {"name": "Cisco-AVPair", "value": "subscriber:command=reauthenticate"},
    ]
    session = nas.session("two", "NAS-Port = 7", "Framed-IP-Address = 10.5.0.7")
    assert nas.change(session, attributes)["outcome"] == "ack", nas.log()[-3000:]
    request = nas.log().rpartition("Received CoA-Request")[2].partition("Sent")[0]
    for line in (
        'Filter-Id = "guests"', "Session-Timeout = 600", 'Cisco-AVPair = "subscriber:command=reauthenticate"',
        "NAS-Port = 7", "Framed-IP-Address = 10.5.0.7",
    ):  # fmt: skip
        assert line in request

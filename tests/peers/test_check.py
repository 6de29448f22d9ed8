"""Tests of `sallyport check radius`, which signs, beside a NAS that does not sign. radclient plays the NAS."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.programs import needs, radclient
from tests.running_service import RunningService, running_service

SECRET = "a secret of a NAS"
LOGIN = ("--user", "bob", "--password", "hello")
PLAIN = ('User-Name = "bob"', 'User-Password = "hello"')
SIGNED = "Message-Authenticator = 0x00"
ACCEPTED, SILENT = "Received Access-Accept", "No reply"

pytestmark = [pytest.mark.peer, needs("radclient")]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service with the user bob, and with a RADIUS client that may latch signatures."""
    with running_service(tmp_path) as service:
        service.add_client("here", "127.0.0.1", SECRET)
        service.add_user("bob", b"hello")
        yield service


def ask(service: RunningService, *attributes: str, secret: str = SECRET, wait_s: float = 5) -> str:
    """Log in with radclient, and return its output."""
    server = f"127.0.0.1:{service.ports.auth}"
    return radclient(service.directory, "auth", server, secret, [*PLAIN, *attributes], wait_s=wait_s)


def finding(service: RunningService, address: str = "127.0.0.1") -> tuple[str, str]:
    """Return the verdict and the remedy for a sender.

    Assert that `client unknown`, `doctor` and the log show the same.
    """
    rows = json.loads(service.ok("client", "unknown", "--json"))
    (row,) = [each for each in rows if each["address"] == address]
    doctor = json.loads(service.cli("doctor", "--json").stdout)
    assert any(row["verdict"] in each["finding"] and row["remedy"] in each["finding"] for each in doctor)
    lines = [json.loads(line) for line in service.log().splitlines() if '"radius_sender_refused"' in line]
    logged = [(each["verdict"], each["remedy"]) for each in lines if each["source"] == address]
    assert (row["verdict"], row["remedy"]) in logged
    assert f"{address}: {row['verdict']}: {row['remedy']}" in service.program("client", "unknown").stderr
    return row["verdict"], row["remedy"]


def test_a_nas_that_does_not_sign_works_after_a_check(service: RunningService) -> None:
    """The check signs its request but latches nothing, so an unsigned login after it is still answered.

    A signed login of the NAS latches the signature. An unsigned login then gets no answer, and the cause is reported
    with the command that resolves it.
    """
    server = f"127.0.0.1:{service.ports.auth}"
    service.ok("check", "radius", server, "--secret", SECRET, *LOGIN)
    assert ACCEPTED in ask(service)
    assert ACCEPTED in ask(service, SIGNED)
    assert SILENT in ask(service, wait_s=1)
    verdict, remedy = finding(service)
    assert verdict == "unsigned, and the client must sign"
    assert remedy.endswith("if it cannot sign, sallyport client unlatch here")
    service.ok("client", "unlatch", "here")
    service.ok("check", "radius", server, "--secret", SECRET, *LOGIN)
    assert ACCEPTED in ask(service)


@pytest.mark.parametrize(
    ("attributes", "secret", "verdict", "remedy"),
    [
        ((SIGNED,), "another secret", "wrong secret", "enter the secret of RADIUS client here at the device again"),
        (
            (), "another secret", "wrong password or wrong shared secret",
            "enter the secret of RADIUS client here at the device again",
        ),
        (("Proxy-State = 0x31",), SECRET, "Proxy-State without a signature", "or sallyport client unlatch here"),
        (
            ('Packet-Src-IP-Address = "127.0.0.9"',), SECRET, "no RADIUS client has this address",
            "sallyport client add NAME --from-unknown --address 127.0.0.9",
        ),
    ],
    ids=["wrong secret, signed", "wrong secret, unsigned", "Proxy-State", "stranger"],
)  # fmt: skip
def test_each_cause_is_named(
    service: RunningService, attributes: tuple[str, ...], secret: str, verdict: str, remedy: str
) -> None:
    """Each cause of a missing answer is reported in the list of senders, by `doctor` and in the log."""
    assert ACCEPTED in ask(service)  # Proxy-State now needs a signature
    assert ACCEPTED not in ask(service, *attributes, secret=secret, wait_s=1)
    found = finding(service, "127.0.0.9" if "127.0.0.9" in "".join(attributes) else "127.0.0.1")
    assert found[0] == verdict and remedy in found[1]

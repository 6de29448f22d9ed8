"""Helpers for tests of the second factor: a domain that enforces, its users, and devices that radclient plays."""

import re
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyotp

from tests.peers.programs import radclient
from tests.running_service import RunningService

SECRET = "a-secret-of-devices"
PASSWORD = "hello"
ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}
SIGNED = "Message-Authenticator = 0x00"
ACCEPTED, REJECTED, CHALLENGED = "Received Access-Accept", "Received Access-Reject", "Received Access-Challenge"

_stations = count(1)


def populate(service: RunningService, *users: str, address: str = "127.0.0.1", secret: str = SECRET) -> None:
    """Add a RADIUS client and users to the first domain, and set the domain to enforce."""
    service.add_client("devices", address, secret)
    for user in users:
        service.add_user(user, PASSWORD)
    service.set_mode("default", "enforce")


def provide(service: RunningService, provider: str, **fields: object) -> None:
    """Set a provider for the domain."""
    service.post("/ad/SetMFAProvider", {**ONE, "provider": provider, **fields})


def enrol(service: RunningService, user: str) -> pyotp.TOTP:
    """Enrol a user for one-time passwords and confirm the current code.

    The next code that is accepted is `next_code`.
    """
    seed = pyotp.TOTP(service.enrol_totp(user))
    service.confirm_totp(user, seed.now())
    return seed


def next_code(seed: pyotp.TOTP) -> str:
    """Return the code of the next time step, which is already valid."""
    return seed.at(int(time.time()) + 30)


def event(service: RunningService, user: str) -> tuple[Any, ...]:
    """Return the decision, applied decision, reason and factor of a user's last event."""
    sql = "select decision, applied_decision, reason, factor from events where user_name = ? order by id desc limit 1"
    (row,) = service.rows(sql, user)
    return row


def state_of(output: str) -> str:
    """Return the State of the challenge from radclient's output, as an attribute that can be sent."""
    found = re.findall(r"^\s+State = (0x[0-9a-f]+)", output.partition(CHALLENGED)[2], re.MULTILINE)
    assert len(found) == 1, output
    return f"State = {found[0]}"


def answer_attributes(output: str) -> list[str]:
    """Return the attributes of an Access-Accept from radclient's output, without its signature."""
    lines = output.partition(ACCEPTED)[2].splitlines()[1:]
    found = [line.strip() for line in lines if line.startswith("\t")]
    return [line for line in found if not line.startswith("Message-Authenticator")]


class Device:
    """A device with one station, which radclient plays. Each new object is another device and another station."""

    def __init__(self, directory: Path, port: int, secret: str = SECRET) -> None:
        number = next(_stations)
        self.station = f"02-00-00-00-{number >> 8:02X}-{number & 255:02X}"
        self._names = (f'NAS-Identifier = "nas-{number}"', f'Calling-Station-Id = "{self.station}"', SIGNED)
        self._directory = directory / f"nas-{number}"
        self._directory.mkdir()
        self._server, self._secret = f"127.0.0.1:{port}", secret

    def pap(self, user: str, password: str, *more: str, tries: int = 1, wait_s: float = 10) -> str:
        """Log in by PAP, and return radclient's output."""
        return self._send([f'User-Name = "{user}"', f'User-Password = "{password}"', *more], tries, wait_s)

    def chap(self, user: str, password: str, *more: str, tries: int = 1, wait_s: float = 10) -> str:
        """Log in by CHAP, and return radclient's output."""
        return self._send([f'User-Name = "{user}"', f'CHAP-Password = "{password}"', *more], tries, wait_s)

    def _send(self, attributes: Sequence[str], tries: int, wait_s: float) -> str:
        lines = [*attributes, *self._names]
        return radclient(self._directory, "auth", self._server, self._secret, lines, tries=tries, wait_s=wait_s)

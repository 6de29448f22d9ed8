"""What the tests of the second factor share: a domain that enforces, users, and devices that radclient speaks for."""

import re
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyotp

from tests.peers.programs import radclient
from tests.service import RunningService

SECRET = "a-secret-of-devices"
PASSWORD = "hello"
ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}
SIGNED = "Message-Authenticator = 0x00"
ACCEPTED, REJECTED, CHALLENGED = "Received Access-Accept", "Received Access-Reject", "Received Access-Challenge"

_stations = count(1)


def populate(service: RunningService, *users: str, address: str = "127.0.0.1", secret: str = SECRET) -> None:
    """A client, users of the first domain, which enforces."""
    service.add_client("devices", address, secret)
    for user in users:
        service.add_user(user, PASSWORD)
    service.set_mode("default", "enforce")


def provide(service: RunningService, provider: str, **fields: object) -> None:
    """Give the domain a provider."""
    service.post("/ad/SetMFAProvider", {**ONE, "provider": provider, **fields})


def enrol(service: RunningService, user: str) -> pyotp.TOTP:
    """Enrol a user for one-time passwords with the code of now: the next one that counts is `next_code`."""
    seed = pyotp.TOTP(service.enrol_totp(user))
    service.confirm_totp(user, seed.now())
    return seed


def next_code(seed: pyotp.TOTP) -> str:
    """The code of the step after this one, which counts already."""
    return seed.at(int(time.time()) + 30)


def event(service: RunningService, user: str) -> tuple[Any, ...]:
    """A user's last event: decision, applied decision, reason, factor."""
    sql = "select decision, applied_decision, reason, factor from events where user_name = ? order by id desc limit 1"
    (row,) = service.rows(sql, user)
    return row


def state_of(told: str) -> str:
    """The State of the challenge that radclient has shown, as an attribute to send."""
    found = re.findall(r"^\s+State = (0x[0-9a-f]+)", told.partition(CHALLENGED)[2], re.MULTILINE)
    assert len(found) == 1, told
    return f"State = {found[0]}"


def answer_attributes(told: str) -> list[str]:
    """What an Access-Accept carries but its signature, as radclient shows it."""
    lines = told.partition(ACCEPTED)[2].splitlines()[1:]
    found = [line.strip() for line in lines if line.startswith("\t")]
    return [line for line in found if not line.startswith("Message-Authenticator")]


class Device:
    """radclient as a device with one station behind it; each new one is another device and station."""

    def __init__(self, directory: Path, port: int, secret: str = SECRET) -> None:
        number = next(_stations)
        self.station = f"02-00-00-00-{number >> 8:02X}-{number & 255:02X}"
        self._names = (f'NAS-Identifier = "nas-{number}"', f'Calling-Station-Id = "{self.station}"', SIGNED)
        self._directory = directory / f"nas-{number}"
        self._directory.mkdir()
        self._server, self._secret = f"127.0.0.1:{port}", secret

    def pap(self, user: str, password: str, *more: str, tries: int = 1, wait_s: float = 10) -> str:
        """A login; what radclient tells."""
        return self._send([f'User-Name = "{user}"', f'User-Password = "{password}"', *more], tries, wait_s)

    def chap(self, user: str, password: str, *more: str, tries: int = 1, wait_s: float = 10) -> str:
        """The same by CHAP."""
        return self._send([f'User-Name = "{user}"', f'CHAP-Password = "{password}"', *more], tries, wait_s)

    def _send(self, attributes: Sequence[str], tries: int, wait_s: float) -> str:
        lines = [*attributes, *self._names]
        return radclient(self._directory, "auth", self._server, self._secret, lines, tries=tries, wait_s=wait_s)

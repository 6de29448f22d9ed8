"""Logins at a fixed rate, alone and beside 1,000 people at the step-up page.

Each person has typed the password at a device, opens the link of the challenge, and proves with a passkey: three
requests over two TLS connections, from an address of 127.0.0.0/8 that no other person has. All pages are open before
the first person proves. The p99 of the logins should be below 20 ms.
"""

import html
import json
import re
import ssl
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from tabulate import tabulate

from sallyport.base.clock import now_us
from sallyport.radius.attributes import REPLY_MESSAGE
from sallyport.radius.packet import ACCESS_CHALLENGE
from tests.areas.factors.authenticator import Authenticator, cbor
from tests.peers.step_ups import INSERT, LINK, service_with_pages
from tests.running_service import RunningService

from .child import SECRET
from .console_load import RATE, figures
from .radload import Load, compile_radload, run_radload
from .settings import BenchmarkError, Settings

PEOPLE = 1_000
TURN_S = 20.0
"""Time in which all people open their pages, and again in which all of them prove."""
PLAIN_USERS, DEVICES, THREADS = 100, 100, 16
PASSWORD = "correct horse"
ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}
FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
_OPTIONS = re.compile(r'data-options="([^"]*)"')
_LOGIN = re.compile(r'name="login" value="([0-9a-f]+)"')
_DIGITS = re.compile(r'class="digits"[^>]*>(\d+)<')


@dataclass
class Visitor:
    """A person with a passkey, and the browser. address: the address of the browser. page: the last page."""

    name: str
    address: str
    device: Authenticator
    link: str = ""
    cookie: str = ""
    page: str = ""


@dataclass
class People:
    """All people, and the milliseconds of their requests."""

    visitors: Sequence[Visitor]
    trust: ssl.SSLContext
    times: list[float] = field(default_factory=list)

    def open_page(self, visitor: Visitor) -> None:
        """Open the link and continue."""
        connection = self._connect(visitor)
        self._request(connection, visitor, "GET", f"/mfa/{_code(visitor)}")
        self._request(connection, visitor, "POST", "/mfa", code=_code(visitor))
        connection.close()

    def prove(self, visitor: Visitor) -> None:
        """Answer the page with the passkey. Raises BenchmarkError if it shows no digits."""
        options, login = _OPTIONS.search(visitor.page), _LOGIN.search(visitor.page)
        if options is None or login is None:
            raise BenchmarkError(f"{visitor.name}: the page offers no passkey")
        response = visitor.device.get(json.loads(html.unescape(options[1])))
        connection = self._connect(visitor)
        self._request(connection, visitor, "POST", "/mfa", login=login[1], do="passkey", credential=response)
        connection.close()
        if _DIGITS.search(visitor.page) is None:
            raise BenchmarkError(f"{visitor.name}: the proof is not accepted")

    def _connect(self, visitor: Visitor) -> HTTPSConnection:
        port = int(visitor.link.split("/")[2].rpartition(":")[2])
        return HTTPSConnection("127.0.0.1", port, context=self.trust, source_address=(visitor.address, 0), timeout=30)

    def _request(self, connection: HTTPSConnection, visitor: Visitor, method: str, path: str, **fields: str) -> None:
        began = time.perf_counter()
        body = urlencode(fields) if fields else None
        connection.request(method, path, body, {**FORM, "cookie": visitor.cookie} if fields else {})
        answer = connection.getresponse()
        visitor.page = answer.read().decode()
        self.times.append((time.perf_counter() - began) * 1000)
        if answer.status != 200:
            raise BenchmarkError(f"{visitor.name}: {method} {answer.status} {visitor.page[-500:]}")
        if given := answer.getheader("set-cookie"):
            visitor.cookie = given.partition(";")[0]


def run(settings: Settings) -> str:
    """Measure, and return the table."""
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), settings, PEOPLE, TURN_S)


def measure(directory: Path, settings: Settings, people: int, turn_s: float) -> str:
    """Do the same as `run` in an empty directory. people: the number of people. turn_s: see TURN_S."""
    program, headers = compile_radload(directory), ["", "logins/s", "lost", "p50 ms", "p99 ms", "longest ms"]
    rows = list[list[str]]()
    with service_with_pages(directory, {"SALLYPORT_LOG_LOGINS": "false"}, fresh=True) as service:
        _populate(service)
        _logins(service, program, 2)  # devices register at their first login
        for turn in range(settings.rounds):
            rows.append(["alone", *figures(_logins(service, program, 2 * turn_s)), "", ""])
            at_page = _people(service, turn, people)
            with ThreadPoolExecutor(1) as beside:
                load = beside.submit(_logins, service, program, 2 * turn_s)
                _in_turn(at_page.visitors, at_page.open_page, turn_s)
                _in_turn(at_page.visitors, at_page.prove, turn_s)
                rows.append([f"beside {people:,} people", *figures(load.result()), *_pages(at_page.times)])
    headers += ["CPU µs each", "pages, p50 ms", "p99 ms"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 8])


def _populate(service: RunningService) -> None:
    """Add the users of the plain logins, whom a rule lets in, and set the domain to enforce."""
    service.add_client("bench", "127.0.0.1", SECRET)
    plain = [f"user{number}" for number in range(PLAIN_USERS)]
    for number, name in enumerate(plain):
        service.add_user(name, f"pass{number}")
    service.post("/ad/AddLoginRule", {**ONE, "name": "plain", "action": "allow", "users": plain})
    service.post("/ad/SetMFAProvider", {**ONE, "provider": "own", "factors": "passkey", "timeoutSeconds": 300})
    service.set_mode("default", "enforce")


def _people(service: RunningService, turn: int, number: int) -> People:
    """Return new people with passkeys whose logins wait for their proofs."""
    visitors = [
        Visitor(f"person{turn}-{each}", f"127.{turn + 1}.{each >> 8}.{(each & 255) or 255}", _device(service))
        for each in range(number)
    ]
    for visitor in visitors:
        key = (visitor.device.handle, visitor.device.credential_id, cbor(visitor.device.public), now_us())
        service.execute(INSERT, visitor.name, visitor.name, *key)
    with ThreadPoolExecutor(THREADS) as pool:  # many writes share a transaction
        list(pool.map(lambda each: service.add_user(each.name, PASSWORD), visitors))
        list(pool.map(lambda each: _log_in(service, each), visitors))
    trust = ssl.create_default_context(cafile=service.environ["SALLYPORT_TLS_CERTIFICATE"])
    return People(visitors, trust)


def _device(service: RunningService) -> Authenticator:
    return Authenticator(host="localhost", origin=service.environ["SALLYPORT_PUBLIC_URL"], handle=b"0123456789abcdef")


def _log_in(service: RunningService, visitor: Visitor) -> None:
    with service.radius(SECRET) as client:
        request = client.packet(
            visitor.name, PASSWORD, CALLING_STATION_ID=visitor.address.encode(), NAS_PORT=b"\0\0\0\1"
        )
        code, found = client.exchange(request)
    link = LINK.search(found.get(REPLY_MESSAGE, b"").decode())
    if code != ACCESS_CHALLENGE or link is None:
        raise BenchmarkError(f"{visitor.name}: the login got no page")
    visitor.link = link[0]


def _code(visitor: Visitor) -> str:
    return visitor.link.rpartition("/")[2]


def _in_turn(visitors: Sequence[Visitor], work: Callable[[Visitor], None], turn_s: float) -> None:
    """Call a function for each person, evenly within the turn. Raises BenchmarkError."""
    began, running = time.monotonic(), list[Future[None]]()
    with ThreadPoolExecutor(THREADS) as pool:
        for number, visitor in enumerate(visitors):
            time.sleep(max(0.0, began + number * turn_s / len(visitors) - time.monotonic()))
            running.append(pool.submit(work, visitor))
    for each in running:
        each.result()


def _logins(service: RunningService, program: Path, seconds: float) -> Load:
    given = {"p": service.ports.auth, "S": SECRET, "n": int(RATE * seconds), "r": RATE, "u": PLAIN_USERS, "N": DEVICES}
    options = [text for name, value in given.items() for text in (f"-{name}", str(value))]
    return run_radload(program, [*options, "-i", str(service.process_id)], seconds=seconds + 5)


def _pages(times: Sequence[float]) -> list[str]:
    found = sorted(times)
    return [f"{found[int(len(found) * share)]:.1f}" for share in (0.5, 0.99)]

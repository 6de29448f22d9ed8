"""The steps of the demo. Steps with unexpected results are listed at the end."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import httpx
from pyotp import TOTP

from sallyport.base.wire import JSON, Row
from sallyport.cli.demo_devices import (
    FORTIGATE,
    HOTSPOT,
    REALM,
    SENDERS,
    USERS,
    Outcome,
    Sender,
    octets_of,
    send,
)
from sallyport.cli.radius import RadiusAnswer, RadiusClient
from sallyport.radius.attributes import ACCT_STATUS_TYPE, REPLY_MESSAGE, STATE, USER_NAME, push_attribute
from sallyport.radius.dictionary import load
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    as_text,
)
from sallyport.service.sockets import Bound
from sallyport.settings.settings import Settings
from sallyport.shell.command import CommandLine, entries

ORG, TENANT, DOMAIN = 1, 1, "corp"
DEVICES = ("device_id", "device_type", "ip_address", "client_ip", "nas_device_type", "nas_port_type", "nas_identifier")
OF_EVENT = ("user", "method", "appliedDecision", "wouldHaveBeen", "reason")
REPORT = (*OF_EVENT, "logins")
LIST_DEVICES = "/network_device/ListDevices"
HTTP_S = 60.0  # the first request for /openapi.json generates it
START = 1  # Acct-Status-Type (RFC 2866 section 5.1)


class DemoRun:
    """One run of the demo against a running service. The methods block, so call them in a thread.

    stays_up: whether the service keeps running after the last step.
    """

    def __init__(self, line: CommandLine, settings: Settings, bound: Bound, *, stays_up: bool = True) -> None:
        self._line = line
        self._settings = settings
        self._stays_up = stays_up
        self._radius, self._accounting, self._http = bound.radius_auth[0], bound.radius_acct[0], bound.http[0]
        self._problems: list[str] = []
        self._scope: Row = {"org": ORG, "tenant": TENANT}
        self._domain_id: JSON = None
        self._token = ""
        self._own_secret = ""
        self._seed = ""
        self._senders: list[Sender] = []

    def tell(self) -> int:
        """Run all steps. Return 0 if every step worked, otherwise 1. Raises SallyportError."""
        self._set_up()
        self._show_logins()
        self._show_inventory()
        self._delete_and_return()
        self._show_report()
        self._show_second_door()
        self._check_pages()
        if self._stays_up:
            self._show_ways_in()
        else:
            self._show_next_steps()
        for each in self._problems:
            self._line.note(f"did not work: {each}")
        return int(bool(self._problems))

    def _must(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._problems.append(otherwise)

    def _title(self, text: str) -> None:
        self._line.print(f"\n{text}\n{'=' * len(text)}")

    # --- set-up and traffic -----------------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Add a domain with users, a RADIUS client for each sender, and a RADIUS client for this machine."""
        line = self._line
        line.print(f"Sallyport runs: RADIUS on {self._radius} and {self._accounting}, HTTP on {self._http}")
        self._token = str(line.row("token.create", name="demo", **self._scope)["token"])
        added = line.run("/ad/AddDomain", {"orgId": ORG, "tenantId": TENANT, "domainName": DOMAIN, "realms": [REALM]})
        self._domain_id = added["domainId"]
        for name, password in USERS.items():
            body: Row = {"userName": name, "password": {"hex": password.hex()}}
            line.run("/api/v1/endpointUsers/addEpmUserInfo", body, domain=DOMAIN)
        self._post("/ad/SetMFAProvider", {**self._body(), "provider": "totp"})
        self._seed = str(line.run("/api/v1/endpointUsers/enrolTotp", {"userName": "alice"}, domain=DOMAIN)["seed"])
        line.run(
            "/api/v1/endpointUsers/confirmTotp", {"userName": "alice", "code": TOTP(self._seed).now()}, domain=DOMAIN
        )
        for name in USERS:  # the test of a user asks the provider, so that the report knows who is enrolled
            line.run("/ad/TestLoginRules", {"user": name}, domain=DOMAIN)
        wanted = [(sender.name, sender.source) for sender in SENDERS] + [("this-machine", "127.0.0.1")]
        bodies: list[Row] = [{"orgId": ORG, "tenantId": TENANT, "name": name, "address": each} for name, each in wanted]
        secrets = [str(line.run("/network_device/AddClient", body, domains=[DOMAIN])["secret"]) for body in bodies]
        self._own_secret = secrets.pop()
        self._senders = [
            replace(sender, secret=secret.encode()) for sender, secret in zip(SENDERS, secrets, strict=True)
        ]

    def _show_logins(self) -> None:
        """Send the logins of all senders. The senders work at the same time; each sends one login after another."""
        self._title(f"Logins over UDP from {len(SENDERS)} hosts")
        with ThreadPoolExecutor(len(SENDERS)) as pool:
            outcomes = [each for some in pool.map(self._send, self._senders) for each in some]
        self._line.print_rows(
            map(_login_row, outcomes), ("sender", "source", "device", "user", "by", "signed", "answer", "ms")
        )
        for each in outcomes:
            self._must(each.as_expected, f"{each.login.user} at {each.nas.product}: {each.answer_text()}")
        self._account()

    def _send(self, sender: Sender) -> list[Outcome]:
        return send(sender, self._radius)

    def _account(self) -> None:
        """Send the Accounting-Request that starts a VPN session (RFC 2866)."""
        sender = next(each for each in self._senders if FORTIGATE in each.nas)
        record = push_attribute(USER_NAME, b"alice") + push_attribute(ACCT_STATUS_TYPE, START.to_bytes(4))
        record += octets_of(load(), FORTIGATE.attributes)
        with RadiusClient(self._accounting, sender.secret, source=sender.source) as client:
            answer = client.ask(ACCOUNTING_REQUEST, lambda _: record)
        self._must(answer.code == ACCOUNTING_RESPONSE, f"accounting: code {answer.code}")

    # --- inventory, report and second factors -----------------------------------------------------------------

    def _devices(self, **more: JSON) -> list[Row]:
        listed = self._post(LIST_DEVICES, {**self._body(), "pageId": 1, "pageSize": 100, **more})
        return entries(listed.get("network_devices"))

    def _show_inventory(self) -> None:
        """Print the inventory, and check that each product was detected."""
        devices = self._devices()
        self._title("Network devices that the service has found")
        self._line.print_rows(devices, (*DEVICES, "request_count"))
        found = {(each["device_type"], each["nas_device_type"], each["nas_port_type"]) for each in devices}
        for sender in self._senders:
            for expected in sender.expected():
                self._must(expected in found, f"no device {' / '.join(expected)} in the inventory")

    def _delete_and_return(self) -> None:
        """Delete a device from the inventory. Then check that its next login registers it again."""
        name = "Lobby"  # its NAS-Identifier
        before = self._devices(search=name)
        deleted = self._post("/network_device/DeleteDevice", {**self._body(), "deviceId": before[0]["device_id"]})
        between = self._devices(search=name)
        sender = next(each for each in self._senders if HOTSPOT in each.nas)
        again = self._send(replace(sender, nas=(replace(HOTSPOT, logins=HOTSPOT.logins[:1]),)))
        after = self._devices(search=name)
        self._title(f"DeleteDevice over HTTP ({deleted.get('message')}), and the device's next login")
        states = [("before", before), ("deleted", between), ("after its next login", after)]
        rows = [{"when": when, **each} for when, some in states for each in some or [{"nas_identifier": "(none)"}]]
        self._line.print_rows(rows, ("when", "device_id", "device_type", "nas_identifier", "registrations"))
        self._must(deleted.get("code") == 200 and not between, "DeleteDevice did not delete the device")
        self._must(all(each.as_expected for each in again), "the deleted device got no answer")
        self._must([each["registrations"] for each in after] == [2], "the deleted device did not register again")

    def _show_report(self) -> None:
        """Print the decisions about the logins, as monitor mode has recorded them."""
        events = self._line.listed("/ad/GetAuthLog", "events", domain=DOMAIN)
        counted = Counter(tuple(str(each[field]) for field in OF_EVENT) for each in events)
        rows: list[Row] = [{**dict(zip(REPORT, each, strict=False)), "logins": n} for each, n in counted.most_common()]
        self._title(f"Monitoring report of the domain {DOMAIN}: what enforce mode would have done")
        self._line.print_rows(rows, REPORT)
        sent = 1 + sum(len(nas.logins) for sender in SENDERS for nas in sender.nas)
        reported = sum(each["logins"] for each in rows if isinstance(each["logins"], int))
        self._must(reported == sent, f"the report has {reported} of {sent} logins")

    def _show_second_door(self) -> None:
        """Switch the domain to enforce mode. Then log in as alice, who has a second factor, and as bob, who has
        none."""
        self._line.run("/ad/updateDomainEnforcement", {"enforcementMode": "enforce"}, domain=DOMAIN)
        sender = next(each for each in self._senders if FORTIGATE in each.nas)
        octets = octets_of(load(), FORTIGATE.attributes)
        # the code of the next time step, because the enrolment has used the current code
        code = TOTP(self._seed).at(int(time.time()) + 30)
        with RadiusClient(self._radius, sender.secret, source=sender.source) as client:

            def log_in(user: str, typed: bytes, after: RadiusAnswer | None = None) -> RadiusAnswer:
                state = b"" if after is None else push_attribute(STATE, after.attributes.get(STATE, b""))
                return client.login(user.encode(), typed, octets + state)

            asked = log_in("alice", USERS["alice"])
            wrong = log_in("alice", b"000000", asked)
            right = log_in("alice", code.encode(), wrong)
            again = log_in("alice", USERS["alice"] + code.encode())
            other = log_in("bob", USERS["bob"])
        steps = (
            ("alice, her password", asked, ACCESS_CHALLENGE),
            ("alice, a wrong code", wrong, ACCESS_CHALLENGE),
            ("alice, the code of her app", right, ACCESS_ACCEPT),
            ("alice, password and the same code in one field", again, ACCESS_REJECT),
            ("bob, who has not enrolled, his password", other, ACCESS_REJECT),
        )
        self._title(f"Second factor: {DOMAIN} is in enforce mode, with the MFA provider totp")
        rows: list[Row] = [
            {
                "login": what,
                "answer": CODE_NAMES[answer.code],
                "says": as_text(answer.attributes.get(REPLY_MESSAGE, b"")),
            }
            for what, answer, _ in steps
        ]
        self._line.print_rows(rows, ("login", "answer", "says"))
        for what, answer, expected in steps:
            self._must(answer.code == expected, f"{what}: {CODE_NAMES[answer.code]}")

    # --- next steps -------------------------------------------------------------------------------------------

    def _check_pages(self) -> None:
        for path in _PAGES.values():
            status = self._get(path)
            self._must(status == 200, f"{path}: {status}")

    def _show_next_steps(self) -> None:
        self._title("Where to go on")
        program = sys.argv[0]
        self._line.print("The service of the demo has stopped, and its data are removed.")
        self._line.print(f"{program} demo    run the demo again; the service keeps running for your own requests")
        self._line.print(f"{program} serve   a service that keeps its data, in ./sallyport-data")

    def _show_ways_in(self) -> None:
        self._title("Where to go on")
        base = f"http://{self._http}"
        for name, path in _PAGES.items():
            self._line.print(f"{name:9} {base}{path}")
        self._line.print(f"RADIUS    {self._radius} (authentication), {self._accounting} (accounting)")
        self._line.print(f"token     {self._token}\n")
        for text in self._examples(base):
            self._line.print(text)

    def _examples(self, base: str) -> Sequence[str]:
        """Return commands that work in this order. The domain returns to monitor mode, so that bob can log in."""
        here = f"SALLYPORT_DATA_DIR={self._settings.data_dir} {sys.argv[0]}"
        return (
            self._curl(base, LIST_DEVICES, {**self._body(), "pageId": 1, "pageSize": 10}),
            self._curl(base, "/ad/GetAuthLog", self._body()),
            self._curl(base, "/ad/updateDomainEnforcement", {**self._body(), "enforcementMode": "monitor"}),
            f"{here} check radius {self._radius} --secret {self._own_secret} --user bob --password '{_BOB}'",
            f"{here} event list --domain {DOMAIN}",
            f"{here} device list",
            f"{here} export demo-files",
        )

    def _curl(self, base: str, path: str, body: Row) -> str:
        head = f"-H 'X-Authorization: {self._token}' -H 'Content-Type: application/json'"
        return f"curl -s {base}{path} {head} -d '{json.dumps(body)}'"

    # --- HTTP -------------------------------------------------------------------------------------------------

    def _body(self) -> Row:
        return {"orgId": ORG, "tenantId": TENANT, "domainId": self._domain_id}

    def _post(self, path: str, body: Row) -> Row:
        headers = {"X-Authorization": self._token}
        answer = httpx.post(f"http://{self._http}{path}", json=body, headers=headers, trust_env=False, timeout=HTTP_S)
        self._must(answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}")
        got = answer.json()
        return got if isinstance(got, dict) else {}

    def _get(self, path: str) -> int:
        return httpx.get(f"http://{self._http}{path}", trust_env=False, timeout=HTTP_S).status_code


_BOB = USERS["bob"].decode()
_PAGES: Final = {
    "console": "/sign-in",
    "API": "/docs",
    "OpenAPI": "/openapi.json",
    "metrics": "/metrics",
    "alive": "/healthz",
    "ready": "/readyz",
}


def _login_row(outcome: Outcome) -> Row:
    answer = outcome.answer
    return {
        "sender": outcome.sender.name,
        "source": outcome.sender.source,
        "device": outcome.nas.product,
        "user": outcome.login.user,
        "by": "CHAP" if outcome.login.chap else "PAP",
        "signed": outcome.sender.signed,
        "answer": outcome.answer_text(),
        "ms": "" if answer is None else f"{answer.seconds * 1000:.1f}",
    }

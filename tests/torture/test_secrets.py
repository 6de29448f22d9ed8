"""No secret is where people look: log, events, audit trail, metrics, errors, the API's description, outlets.

Each secret is a word of its own, fed in through every way there is, right and wrong, at the most talkative level.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyotp import TOTP

from tests.service import RunningService, running_service

SECRETS = {
    "shared secret": "Zq1-shared-secret-of-a-client",
    "other shared secret": "Zq2-shared-secret-changed",
    "password": "Zq3-password-of-ann",
    "wrong password": "Zq4-password-mistyped",
    "new password": "Zq5-password-of-ben",
    "duo": "Zq6-skey-of-duo-0123456789012345678901234567",
    "okta": "Zq7-token-of-okta",
    "privacyidea": "Zq8-token-of-privacyidea",
    "webhook": "Zq9-secret-of-the-webhook-0123456789",
    "radius provider": "Zqa-secret-of-a-radius-provider",
    "bind": "Zqb-password-of-the-directory",
    "upstream": "Zqc-secret-of-an-upstream-server",
    "malformed": "Zqd-in-a-body-that-is-refused",
}
PROVIDERS = {
    "duo": {"ikey": "DIXXXXXXXXXXXXXXXXXX", "skey": SECRETS["duo"], "host": "127.0.0.1:9"},
    "okta": {"domain": "127.0.0.1:9", "apiToken": SECRETS["okta"]},
    "privacyidea": {"url": "http://127.0.0.1:9", "adminToken": SECRETS["privacyidea"]},
    "webhook": {"url": "http://127.0.0.1:9/hook", "secret": SECRETS["webhook"]},
    "radius": {"host": "127.0.0.1", "port": 9, "secret": SECRETS["radius provider"]},
}
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1}
TENANT = {"orgId": 1, "tenantId": 1}


@dataclass
class Fed:
    """A service that has been told everything, and what it said. made: secrets that it made itself."""

    service: RunningService
    outlet: Path
    answers: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)

    def send(self, path: str, body: object, *, method: str = "POST") -> None:
        """Ask, whatever comes of it; the answer is kept."""
        answer = self.service.request(method, path, json=body)
        self.answers.append(f"{path} {answer.status_code} {answer.text}")

    def spelled(self) -> dict[str, list[str]]:
        """Each secret as it is, in hex, and its beginning."""
        every = {**SECRETS, **self.made}
        return {name: [text, text.encode().hex(), text[: max(12, len(text) // 2)]] for name, text in every.items()}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    """Every secret through every way in."""
    directory = tmp_path_factory.mktemp("fed")
    outlet = directory / "siem.jsonl"
    settings = {
        "SALLYPORT_REJECT_DELAY_S": "0",
        "SALLYPORT_EVENT_OUTLETS": f"file://{outlet}",
    }
    with running_service(directory, settings) as service:
        service.ok("log", "level", "debug")
        fed = Fed(service, outlet)
        fed.made["admin token"] = service.token
        fed.made["master key"] = (service.data_dir / "master.key").read_text().strip()
        feed_clients(fed)
        feed_users(fed)
        feed_providers(fed)
        feed_refusals(fed)
        wait_for_outlet(fed)
        yield fed


def feed_clients(fed: Fed) -> None:
    """Given by command and by operation, changed, made by the service, wrong on the device."""
    service = fed.service
    service.ok("client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1", "--secret", "-",
               input=SECRETS["shared secret"] + "\n")  # fmt: skip
    fed.made["made secret"] = service.ok("client", "add", "x", "--address", "192.0.2.9", "--org", "1", "--tenant", "1")
    given = {"name": "api", "address": "192.0.2.7", "secret": SECRETS["shared secret"]}
    service.post("/network_device/AddClient", {**TENANT, **given})  # its answer alone has the secret, by the interface
    fed.send("/network_device/UpdateClient", {**TENANT, "clientId": 3, "secret": SECRETS["other shared secret"]})
    with service.radius(SECRETS["other shared secret"]) as device:
        device.send(device.packet("ann", SECRETS["password"]))


def feed_users(fed: Fed) -> None:
    """Passwords right and wrong, one-time codes, a token."""
    service = fed.service
    service.ok("user", "add", "ann", "--domain", "default", "--password", "-", input=SECRETS["password"] + "\n")
    body = {"domainId": 1, "users": [{"username": "ben", "password": SECRETS["new password"]}]}
    fed.send("/api/v1/endpointUsers/addEpmUserInfo", body)
    seed = str(service.call("user.totp", name="ann", domain="default")["seed"])
    fed.made["seed"] = seed
    service.call("user.totp.confirm", name="ann", domain="default", code=TOTP(seed).now())
    fed.made["token"] = service.ok("token", "create", "--org", "1", "--tenant", "1", "--name", "t")
    with service.radius(SECRETS["shared secret"]) as device:
        for password in ("password", "wrong password"):
            device.login("ann", SECRETS[password])
            device.send(device.packet("ann", SECRETS[password], signed=False))


def feed_providers(fed: Fed) -> None:
    """Each provider set and asked in vain, both first factors that have secrets, then a login with each."""
    for name, fields in PROVIDERS.items():
        fed.send("/ad/SetMFAProvider", {**SCOPE, "provider": name, "timeoutSeconds": 5, **fields})
        fed.send("/ad/updateDomainEnforcement", {**SCOPE, "enforcementMode": "enforce"})
        with fed.service.radius(SECRETS["shared secret"]) as device, suppress(TimeoutError):
            device.login("ann", SECRETS["password"])
        fed.send("/ad/GetMFAProvider", SCOPE)
    fed.send("/ad/DeleteMFAProvider", SCOPE)
    ldap = {"servers": ["ldap://127.0.0.1:9"], "baseDN": "dc=x", "bindDN": "cn=x", "bindPassword": SECRETS["bind"]}
    upstream = {
        "servers": [{"host": "127.0.0.1", "port": 9, "secret": SECRETS["upstream"]}],
        "responseWindowSeconds": 1,
    }
    for kind, fields in (("ldap", ldap), ("radius", upstream)):
        fed.send("/ad/SetFirstFactor", {**SCOPE, "firstFactor": kind, kind: fields})
        fed.send("/ad/GetFirstFactor", SCOPE)
        fed.send("/ad/CheckFirstFactor", {**SCOPE, "userName": "ann", "password": SECRETS["wrong password"]})


def feed_refusals(fed: Fed) -> None:
    """Bodies that are refused: their values come back in no message."""
    word = SECRETS["malformed"]
    for path in ("/network_device/AddClient", "/ad/SetMFAProvider", "/ad/SetFirstFactor", "/ad/CheckFirstFactor"):
        fed.send(
            path, {**SCOPE, "secret": [word], "password": {"x": word}, "provider": word, "name": "n", "address": word}
        )
    fed.send("/api/v1/endpointUsers/addEpmUserInfo", {"domainId": 1, "users": [{"username": "", "password": word}]})
    fed.service.request("POST", "/ad/GetAllDomains", json=TENANT, token=word)
    fed.service.cli(
        "check", "radius", "127.0.0.1:9", "--secret", word, "--user", "u", "--password", word, "--timeout", "0.1"
    )


def wait_for_outlet(fed: Fed) -> None:
    """Until the SIEM has what the store has."""
    deadline = time.monotonic() + 60
    (count,) = fed.service.rows("select count(*) from events")[0]
    while not fed.outlet.exists() or fed.outlet.read_text().count("\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def places(fed: Fed) -> dict[str, str]:
    """Where people look, and what is there."""
    service = fed.service
    stored = {table: repr(service.rows(f"select * from {table}")) for table in ("events", "audit_trail")}  # noqa: S608
    lists = ("client list", "client unknown", "user list --domain default", "token list", "domain list", "audit list",
             "event list --domain default")  # fmt: skip
    listed = {command: service.ok(*command.split(), "--json") for command in lists}
    return {
        "log": service.log(),
        "outlet": fed.outlet.read_text(),
        "metrics": service.request("GET", "/metrics").text,
        "description": service.request("GET", "/openapi.json").text + service.request("GET", "/docs").text,
        "doctor": service.cli("doctor").stdout,
        "answers": "\n".join(fed.answers),
        **stored,
        **listed,
    }


def test_no_secret_is_where_people_look(fed: Fed) -> None:
    """As it is, in hex, or its first half."""
    found = [
        (name, place)
        for place, text in places(fed).items()
        for name, spellings in fed.spelled().items()
        if any(spelling in text for spelling in spellings)
    ]
    assert not found


def test_no_secret_lies_in_clear_in_the_store(fed: Fed) -> None:
    """Neither in the database nor in its log: sealed, or a hash."""
    octets = b"".join(path.read_bytes() for path in fed.service.data_dir.glob("sallyport.db*"))
    known = {name: forms for name, forms in fed.spelled().items() if name not in {"malformed", "wrong password"}}
    assert not [name for name, forms in known.items() if forms[0].encode() in octets or forms[1].encode() in octets]


def test_something_was_fed(fed: Fed) -> None:
    """The ways in were taken: logins were decided, providers set, and refusals answered."""
    assert len(fed.service.rows("select id from events")) >= 6
    statuses = [int(re.split(r"\s", answer)[1]) for answer in fed.answers]
    assert {200, 400} <= set(statuses)
    assert not [answer for answer in fed.answers if " 500 " in answer]
    lines = [json.loads(line) for line in fed.service.log().splitlines() if line.startswith("{")]
    assert {"login", "a domain's MFA provider was set"} <= {line["event"] for line in lines}

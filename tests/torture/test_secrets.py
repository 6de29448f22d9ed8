"""Tests that no secret appears in the log, events, audit trail, metrics, errors, API description and outlets.

Each secret is a unique word. It is submitted in every possible place, where it is right and where it is wrong, while
the log level is the most detailed one.
"""

import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyotp import TOTP

from sallyport.areas.did.dids import repo
from sallyport.base.secret import new_key, token_hash
from sallyport.base.sha512crypt import sha512_crypt
from sallyport.store.vault import Vault, load_master_keys
from tests.running_service import RunningService, running_service

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
    "directory bind": "Zqe-password-of-a-directory-account",
    "import bind": "Zqf-password-of-an-import",
    "cloud client": "Zqg-secret-of-a-cloud-application",
    "cloud token": "Zqh-token-of-a-cloud-directory",
    "rotated password": "Zqi-password-made-on-a-host",
    "epm password": "Zqj-password-beside-a-credential",
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
class Exposed:
    """A service that received every secret, and its output.

    made: the secrets that the service made, as text. keys: the private keys.
    """

    service: RunningService
    outlet: Path
    answers: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    keys: list[bytes] = field(default_factory=list)

    def send(self, path: str, body: object, *, method: str = "POST", token: str | None = None) -> None:
        """Send a request, whatever its result is, and store the answer."""
        answer = self.service.request(method, path, json=body, token=token)
        self.answers.append(f"{path} {answer.status_code} {answer.text}")

    def spelled(self) -> dict[str, list[str]]:
        """Return the forms in which each secret could appear: plain, in hex, and its first half.

        A private key is given in hex and as in a JWK.
        """
        keys = {f"private key {number}": key for number, key in enumerate(self.keys)}
        coded = {name: urlsafe_b64encode(key).decode().rstrip("=") for name, key in keys.items()}
        every = {**SECRETS, **self.made, **{f"{name}, hex": key.hex() for name, key in keys.items()}, **coded}
        return {name: [text, text.encode().hex(), text[: max(12, len(text) // 2)]] for name, text in every.items()}


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exposed]:
    """Submit every secret in every possible place."""
    directory = tmp_path_factory.mktemp("fed")
    outlet = directory / "siem.jsonl"
    settings = {
        "SALLYPORT_REJECT_DELAY_S": "0",
        "SALLYPORT_EVENT_OUTLETS": f"file://{outlet}",
    }
    with running_service(directory, settings) as service:
        service.ok("log", "level", "debug")
        exposed = Exposed(service, outlet)
        exposed.made["admin token"] = service.token
        exposed.made["master key"] = (service.data_dir / "master.key").read_text().strip()
        feed_clients(exposed)
        feed_users(exposed)
        feed_providers(exposed)
        feed_directories(exposed)
        feed_agents(exposed)
        feed_wallets(exposed)
        feed_refusals(exposed)
        wait_for_outlet(exposed)
        yield exposed


def feed_clients(exposed: Exposed) -> None:
    """Submit secrets of clients by the command line and by the API.

    Some are changed, some are made by the service, and one on the device is wrong.
    """
    service = exposed.service
    service.ok("client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1", "--secret", "-",
               input=SECRETS["shared secret"] + "\n")  # fmt: skip
    exposed.made["made secret"] = service.ok(
        "client", "add", "x", "--address", "192.0.2.9", "--org", "1", "--tenant", "1"
    )
    given = {"name": "api", "address": "192.0.2.7", "secret": SECRETS["shared secret"]}
    service.post(
        "/network_device/AddClient", {**TENANT, **given}
    )  # the interface allows the secret in this answer alone
    exposed.send("/network_device/UpdateClient", {**TENANT, "clientId": 3, "secret": SECRETS["other shared secret"]})
    with service.radius(SECRETS["other shared secret"]) as device:
        device.send(device.packet("ann", SECRETS["password"]))


def feed_users(exposed: Exposed) -> None:
    """Submit right and wrong passwords, one-time codes and a token."""
    service = exposed.service
    service.ok("user", "add", "ann", "--domain", "default", "--password", "-", input=SECRETS["password"] + "\n")
    body = {"domainId": 1, "users": [{"username": "ben", "password": SECRETS["new password"]}]}
    exposed.send("/api/v1/endpointUsers/addEpmUserInfo", body)
    seed = str(service.enrol_totp("ann"))
    exposed.made["seed"] = seed
    service.confirm_totp("ann", TOTP(seed).now())
    exposed.made["token"] = service.ok("token", "create", "--org", "1", "--tenant", "1", "--name", "t")
    with service.radius(SECRETS["shared secret"]) as device:
        for password in ("password", "wrong password"):
            device.login("ann", SECRETS[password])
            device.send(device.packet("ann", SECRETS[password], signed=False))


def feed_providers(exposed: Exposed) -> None:
    """Set each provider and both first factors with secrets, run their checks, which fail, and log in with each of
    them."""
    for name, fields in PROVIDERS.items():
        exposed.send("/ad/SetMFAProvider", {**SCOPE, "provider": name, "timeoutSeconds": 5, **fields})
        exposed.send("/ad/updateDomainEnforcement", {**SCOPE, "enforcementMode": "enforce"})
        with exposed.service.radius(SECRETS["shared secret"]) as device, suppress(TimeoutError):
            device.login("ann", SECRETS["password"])
        exposed.send("/ad/GetMFAProvider", SCOPE)
    exposed.send("/ad/DeleteMFAProvider", SCOPE)
    ldap = {"servers": ["ldap://127.0.0.1:9"], "baseDN": "dc=x", "bindDN": "cn=x", "bindPassword": SECRETS["bind"]}
    upstream = {
        "servers": [{"host": "127.0.0.1", "port": 9, "secret": SECRETS["upstream"]}],
        "responseWindowSeconds": 1,
    }
    for kind, fields in (("ldap", ldap), ("radius", upstream)):
        exposed.send("/ad/SetFirstFactor", {**SCOPE, "firstFactor": kind, kind: fields})
        exposed.send("/ad/GetFirstFactor", SCOPE)
        exposed.send("/ad/CheckFirstFactor", {**SCOPE, "userName": "ann", "password": SECRETS["wrong password"]})


def feed_directories(exposed: Exposed) -> None:
    """Submit the secrets of directories that cannot be reached."""
    ldap = {"appUrl": "ldaps://127.0.0.1:9", "baseDN": "dc=x", "bindDN": "cn=x"}
    cloud = {"kind": "graph", "tenant": "x.example", "clientId": "app"}
    directories: dict[str, dict[str, str]] = {
        "hq": {**ldap, "bindPassword": SECRETS["directory bind"]},
        "entra": {**cloud, "clientSecret": SECRETS["cloud client"]},
        "okta": {"appUrl": "https://127.0.0.1:9", "kind": "okta", "apiToken": SECRETS["cloud token"]},
    }
    for name, fields in directories.items():
        exposed.send("/api/v1/saveDirectoryConfig", {"domainId": 1, "directoryName": name, **fields})
        exposed.send("/api/v1/directory/sync", {"domainId": 1, "directoryName": name})
        exposed.send("/api/v1/directory/check", {"domainId": 1, "directoryName": name, **fields})  # beside the import
    once = {"ldapHost": "127.0.0.1", "ldapPort": 9, "baseDN": "dc=x", "bindDN": "cn=x", "domainId": 1}
    exposed.send("/api/v1/importUsers", {**once, "bindPassword": SECRETS["import bind"]})
    wait_until(lambda: "RUNNING" not in states(exposed) and "QUEUED" not in states(exposed))


def states(exposed: Exposed) -> set[str]:
    """Return the states of the imports, and store the answers, which are searched later."""
    answers = [
        exposed.service.post("/api/v1/getImportStatus", {"DirectoryName": name}) for name in ("hq", "entra", "okta")
    ]
    exposed.answers += [f"status 200 {json.dumps(answer)}" for answer in answers]
    return {job["state"] for answer in answers for job in answer["jobs"]}


def feed_agents(exposed: Exposed) -> None:
    """Submit right and wrong keys of enrolment and of the agent, and a password that was made on a host."""
    service = exposed.service
    made = service.post("/api/v1/agent/createKey", {"domainId": 1})  # the interface allows the key in this answer alone
    exposed.made |= {"enrolment key": made["apiKey"], "agent key": new_key(), "next agent key": new_key()}
    own = exposed.made["agent key"]
    exposed.send("/api/v1/machine/add-machine", {"machineKey": made["apiKey"], "instanceName": "web"})
    exchange = {"keyHash": token_hash(own), "instanceId": 1}
    exposed.send("/api/v1/agent/exchangeKey", exchange, token=made["apiKey"])
    exposed.send("/api/v1/instances/assignUsersToMachines", {"domainId": 1, "instanceIds": [1], "userIds": [1]})
    exposed.send("/api/v1/agent/desiredState", {"version": 0, "waitS": 0}, token=own)
    word = SECRETS["rotated password"]
    rotation = {"id": "rotation-1", "user": "ann", "phase": "escrow"}
    hashed = sha512_crypt(word.encode())
    exposed.send("/api/v1/agent/rotation", {**rotation, "password": word, "passwordHash": hashed}, token=own)
    exposed.send("/api/v1/agent/rotation", {**rotation, "password": [word], "passwordHash": word}, token=own)
    service.post(
        "/api/v1/agent/getPassword", {"domainId": 1, "instanceId": 1, "userName": "ann"}
    )  # an operation that may show it
    exposed.send("/api/v1/agent/renewKey", {"keyHash": token_hash(exposed.made["next agent key"])}, token=own)
    exposed.send("/api/v1/agent/privilegeStatus", {"at": 1, "version": 1}, token=own[:-1])
    for path in ("listKeys", "listAgents"):
        exposed.send(f"/api/v1/agent/{path}", {"domainId": 1})


def feed_wallets(exposed: Exposed) -> None:
    """Create an issuer, a holder whose key is in the service, a credential with a password, and a
    presentation of it."""
    service = exposed.service
    wallet = {"domainId": 1, "username": "ann", "emailAddress": "ann@x.example"}
    first = service.post("/api/v1/walletService/registerWalletUser", wallet)  # its answer alone has key and token
    second = service.post("/api/v1/walletService/resetWallet", {"domainId": 1, "walletId": 1})
    for name, made in {"": first, "reset ": second}.items():
        exposed.made |= {f"{name}wallet key": made["walletKey"], f"{name}wallet token": made["token"]}
    issuer = service.post("/api/v1/did/createIssuerDid", {"domainId": 1, "method": "web", "name": "i"})["id"]
    exposed.send("/api/v1/did/rotateKey", {"domainId": 1, "did": issuer})
    holder = service.post("/api/v1/did/createHolderDid", {"domainId": 1, "method": "key", "walletUserId": 1})["id"]
    exposed.send(
        "/api/v1/schema/createSchema", {"author": issuer, "name": "s", "schema": {"type": "object"}, "sign": True}
    )
    claims = {"epmUsername": "ann", "epmPassword": SECRETS["epm password"]}
    ids = {"issuerDid": issuer, "holderDid": holder}
    named = {"schemaId": 1, "credentialName": "badge", "metadata": claims}
    exposed.send("/api/v1/credential/createCredential", {"domainId": 1, **ids, **named})
    exposed.send("/api/v1/walletService/assignWalletUser", {"walletId": 1, "userId": 1, "credentialId": 1})
    polled = {"email": "ann@x.example", "walletKey": second["walletKey"]}
    service.post(
        "/api/v1/walletService/pollCredentials", polled, token=second["token"]
    )  # the holder's, by the interface
    exposed.send("/api/v1/credential/GetCredential", {"credentialId": "1"})
    exposed.send("/api/v1/verifierService/issuePR", {**ids, "endpoint": "web"})
    for key in (first["walletKey"], second["walletKey"]):
        shown = {"walletId": 1, "walletKey": key, "holderDid": holder, "presentationRequestId": 1}
        exposed.send("/api/v1/walletService/createPresentation", shown, token=second["token"])
    vault = Vault(load_master_keys(service.data_dir, {}, may_make=False))
    rows = service.rows("select id, sealed from did_keys where did_id = (select id from dids where did = ?)", issuer)
    exposed.keys += [vault.open(sealed, repo.identity(key)) for key, sealed in rows if sealed]


def feed_refusals(exposed: Exposed) -> None:
    """Send bodies that are refused. No message may contain their values."""
    word = SECRETS["malformed"]
    for path in ("/network_device/AddClient", "/ad/SetMFAProvider", "/ad/SetFirstFactor", "/ad/CheckFirstFactor"):
        exposed.send(
            path, {**SCOPE, "secret": [word], "password": {"x": word}, "provider": word, "name": "n", "address": word}
        )
    exposed.send("/api/v1/endpointUsers/addEpmUserInfo", {"domainId": 1, "users": [{"username": "", "password": word}]})
    exposed.service.request("POST", "/ad/GetAllDomains", json=TENANT, token=word)
    exposed.service.cli(
        "check", "radius", "127.0.0.1:9", "--secret", word, "--user", "u", "--password", word, "--timeout", "0.1"
    )


def wait_for_outlet(exposed: Exposed) -> None:
    """Wait until the outlet has all logins, and the whole audit trail except its first lines."""
    last = "select (select max(id) from events), (select max(id) from audit_trail)"
    (newest,) = exposed.service.rows(last)
    wait_until(lambda: {"eventId": newest[0], "auditId": newest[1]}.items() <= delivered(exposed).items())


def delivered(exposed: Exposed) -> dict[str, int]:
    """Return the last eventId and auditId that the outlet received."""
    lines = [json.loads(line) for line in exposed.outlet.read_text().splitlines()] if exposed.outlet.exists() else []
    return {name: line[name] for line in lines for name in ("eventId", "auditId") if name in line}


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def places(exposed: Exposed) -> dict[str, str]:
    """Return each place that is searched, with its content."""
    service = exposed.service
    stored = {table: repr(service.rows(f"select * from {table}")) for table in ("events", "audit_trail")}  # noqa: S608
    lists = (
        "client list",
        "client unknown",
        "user list --domain default",
        "token list",
        "domain list",
        "audit list",
        "event list --domain default",
        "agent key list --domain default",
        "agent list --domain default",
        "directory list --domain default",
        "directory jobs --domain default",
        "directory people --domain default",
        "device list",
        "station list",
        "wallet list",
        "did list --domain default",
        "credential list --domain default",
    )
    listed = {command: service.ok(*command.split(), "--json") for command in lists}
    return {
        "log": service.log(),
        "outlet": exposed.outlet.read_text(),
        "metrics": service.request("GET", "/metrics").text,
        "description": service.request("GET", "/openapi.json").text + service.request("GET", "/docs").text,
        "doctor": service.cli("doctor").stdout,
        "credential": service.ok("credential", "show", "1", "--domain", "default"),
        "directory": service.ok("directory", "show", "hq", "--domain", "default"),
        "answers": "\n".join(exposed.answers),
        **stored,
        **listed,
    }


def test_no_secret_is_in_any_output(exposed: Exposed) -> None:
    """No secret is in any of these places, neither in plain text nor in hex nor by its first half."""
    found = [
        (name, place)
        for place, text in places(exposed).items()
        for name, spellings in exposed.spelled().items()
        if any(spelling in text for spelling in spellings)
    ]
    assert not found


def test_no_secret_lies_in_clear_in_the_store(exposed: Exposed) -> None:
    """The database and its log contain no secret in plain text."""
    octets = b"".join(path.read_bytes() for path in exposed.service.data_dir.glob("sallyport.db*"))
    known = {name: forms for name, forms in exposed.spelled().items() if name not in {"malformed", "wrong password"}}
    assert not [name for name, forms in known.items() if forms[0].encode() in octets or forms[1].encode() in octets]
    assert not [key for key in exposed.keys if key in octets]


def test_the_secrets_were_submitted(exposed: Exposed) -> None:
    """The secrets were really used: logins were decided, providers were set, and bad requests were refused.

    The operations with secrets of a directory, an agent or a wallet succeeded.
    """
    assert len(exposed.keys) == 2
    asked = (
        "saveDirectoryConfig",
        "directory/check",
        "importUsers",
        "exchangeKey",
        "rotation",
        "createCredential",
        "createPresentation",
    )
    for name in asked:
        assert [answer for answer in exposed.answers if re.match(rf"\S*/{name} 200 ", answer)], name
    assert len(exposed.service.rows("select id from events")) >= 6
    statuses = [int(re.split(r"\s", answer)[1]) for answer in exposed.answers]
    assert {200, 400} <= set(statuses)
    assert not [answer for answer in exposed.answers if " 500 " in answer]
    lines = [json.loads(line) for line in exposed.service.log().splitlines() if line.startswith("{")]
    assert {"login", "mfa_provider_set"} <= {line["event"] for line in lines}

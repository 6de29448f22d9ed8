"""No secret is where people look: log, events, audit trail, metrics, errors, the API's description, outlets.

Each secret is a word of its own, fed in through every way there is, right and wrong, at the most talkative level.
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

from sallyport.base.secret import new_key, token_hash
from sallyport.base.sha512crypt import sha512_crypt
from sallyport.did.dids import repo
from sallyport.store.vault import Vault, load_master_keys
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
class Fed:
    """A service that has been told everything, and what it said. made: secrets that it made itself, as text; keys: the
    private keys."""

    service: RunningService
    outlet: Path
    answers: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    keys: list[bytes] = field(default_factory=list)

    def send(self, path: str, body: object, *, method: str = "POST", token: str | None = None) -> None:
        """Ask, whatever comes of it; the answer is kept."""
        answer = self.service.request(method, path, json=body, token=token)
        self.answers.append(f"{path} {answer.status_code} {answer.text}")

    def spelled(self) -> dict[str, list[str]]:
        """Each secret as it is, in hex, and its beginning; a private key in hex and as a JWK has it."""
        keys = {f"private key {number}": key for number, key in enumerate(self.keys)}
        coded = {name: urlsafe_b64encode(key).decode().rstrip("=") for name, key in keys.items()}
        every = {**SECRETS, **self.made, **{f"{name}, hex": key.hex() for name, key in keys.items()}, **coded}
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
        feed_directories(fed)
        feed_agents(fed)
        feed_wallets(fed)
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
    seed = str(service.enrol_totp("ann"))
    fed.made["seed"] = seed
    service.confirm_totp("ann", TOTP(seed).now())
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


def feed_directories(fed: Fed) -> None:
    """Accounts and applications that directories are read by, none of which is there."""
    ldap = {"appUrl": "ldaps://127.0.0.1:9", "baseDN": "dc=x", "bindDN": "cn=x"}
    cloud = {"kind": "graph", "tenant": "x.example", "clientId": "app"}
    directories: dict[str, dict[str, str]] = {
        "hq": {**ldap, "bindPassword": SECRETS["directory bind"]},
        "entra": {**cloud, "clientSecret": SECRETS["cloud client"]},
        "okta": {"appUrl": "https://127.0.0.1:9", "kind": "okta", "apiToken": SECRETS["cloud token"]},
    }
    for name, fields in directories.items():
        fed.send("/api/v1/saveDirectoryConfig", {"domainId": 1, "directoryName": name, **fields})
        fed.send("/api/v1/directory/check", {"domainId": 1, "directoryName": name, **fields})
        fed.send("/api/v1/directory/sync", {"domainId": 1, "directoryName": name})
    once = {"ldapHost": "127.0.0.1", "ldapPort": 9, "baseDN": "dc=x", "bindDN": "cn=x", "domainId": 1}
    fed.send("/api/v1/importUsers", {**once, "bindPassword": SECRETS["import bind"]})
    wait_until(lambda: "RUNNING" not in states(fed) and "QUEUED" not in states(fed))


def states(fed: Fed) -> set[str]:
    """How the imports stand; what they say is kept."""
    answers = [fed.service.post("/api/v1/getImportStatus", {"DirectoryName": name}) for name in ("hq", "entra", "okta")]
    fed.answers += [f"status 200 {json.dumps(answer)}" for answer in answers]
    return {job["state"] for answer in answers for job in answer["jobs"]}


def feed_agents(fed: Fed) -> None:
    """Keys of enrolment and of the agent, right and wrong, and a password that was made on a host."""
    service = fed.service
    made = service.post("/api/v1/agent/createKey", {"domainId": 1})  # its answer alone has the key
    fed.made |= {"enrolment key": made["apiKey"], "agent key": new_key(), "next agent key": new_key()}
    own = fed.made["agent key"]
    fed.send("/api/v1/machine/add-machine", {"machineKey": made["apiKey"], "instanceName": "web"})
    exchange = {"keyHash": token_hash(own), "instanceId": 1}
    fed.send("/api/v1/agent/exchangeKey", exchange, token=made["apiKey"])
    fed.send("/api/v1/instances/assignUsersToMachines", {"domainId": 1, "instanceIds": [1], "userIds": [1]})
    fed.send("/api/v1/agent/desiredState", {"version": 0, "waitS": 0}, token=own)
    word = SECRETS["rotated password"]
    rotation = {"id": "rotation-1", "user": "ann", "phase": "escrow"}
    hashed = sha512_crypt(word.encode())
    fed.send("/api/v1/agent/rotation", {**rotation, "password": word, "passwordHash": hashed}, token=own)
    fed.send("/api/v1/agent/rotation", {**rotation, "password": [word], "passwordHash": word}, token=own)
    service.post("/api/v1/agent/getPassword", {"domainId": 1, "instanceId": 1, "userName": "ann"})  # which may tell it
    fed.send("/api/v1/agent/renewKey", {"keyHash": token_hash(fed.made["next agent key"])}, token=own)
    fed.send("/api/v1/agent/privilegeStatus", {"at": 1, "version": 1}, token=own[:-1])
    for path in ("listKeys", "listAgents"):
        fed.send(f"/api/v1/agent/{path}", {"domainId": 1})


def feed_wallets(fed: Fed) -> None:
    """An issuer, a holder whose key is kept here, a credential with a password beside it, and a presentation of it."""
    service = fed.service
    wallet = {"domainId": 1, "username": "ann", "emailAddress": "ann@x.example"}
    first = service.post("/api/v1/walletService/registerWalletUser", wallet)  # its answer alone has key and token
    second = service.post("/api/v1/walletService/resetWallet", {"domainId": 1, "walletId": 1})
    for name, made in {"": first, "reset ": second}.items():
        fed.made |= {f"{name}wallet key": made["walletKey"], f"{name}wallet token": made["token"]}
    issuer = service.post("/api/v1/did/createIssuerDid", {"domainId": 1, "method": "web", "name": "i"})["id"]
    fed.send("/api/v1/did/rotateKey", {"domainId": 1, "did": issuer})
    holder = service.post("/api/v1/did/createHolderDid", {"domainId": 1, "method": "key", "walletUserId": 1})["id"]
    fed.send("/api/v1/schema/createSchema", {"author": issuer, "name": "s", "schema": {"type": "object"}, "sign": True})
    claims = {"epmUsername": "ann", "epmPassword": SECRETS["epm password"]}
    ids = {"issuerDid": issuer, "holderDid": holder}
    named = {"schemaId": 1, "credentialName": "badge", "metadata": claims}
    fed.send("/api/v1/credential/createCredential", {"domainId": 1, **ids, **named})
    fed.send("/api/v1/walletService/assignWalletUser", {"walletId": 1, "userId": 1, "credentialId": 1})
    polled = {"email": "ann@x.example", "walletKey": second["walletKey"]}
    service.post(
        "/api/v1/walletService/pollCredentials", polled, token=second["token"]
    )  # the holder's, by the interface
    fed.send("/api/v1/credential/GetCredential", {"credentialId": "1"})
    fed.send("/api/v1/verifierService/issuePR", {**ids, "endpoint": "web"})
    for key in (first["walletKey"], second["walletKey"]):
        shown = {"walletId": 1, "walletKey": key, "holderDid": holder, "presentationRequestId": 1}
        fed.send("/api/v1/walletService/createPresentation", shown, token=second["token"])
    vault = Vault(load_master_keys(service.data_dir, {}, may_make=False))
    rows = service.rows("select id, sealed from did_keys where did_id = (select id from dids where did = ?)", issuer)
    fed.keys += [vault.open(sealed, repo.identity(key)) for key, sealed in rows if sealed]


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
    """Until the SIEM has what the store has: all logins, and all of the audit trail but for its first lines."""
    last = "select (select max(id) from events), (select max(id) from audit_trail)"
    (newest,) = fed.service.rows(last)
    wait_until(lambda: {"eventId": newest[0], "auditId": newest[1]}.items() <= delivered(fed).items())


def delivered(fed: Fed) -> dict[str, int]:
    """The last of each that the outlet has."""
    lines = [json.loads(line) for line in fed.outlet.read_text().splitlines()] if fed.outlet.exists() else []
    return {name: line[name] for line in lines for name in ("eventId", "auditId") if name in line}


def wait_until(condition: Callable[[], bool]) -> None:
    """Until something has come about."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def places(fed: Fed) -> dict[str, str]:
    """Where people look, and what is there."""
    service = fed.service
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
        "outlet": fed.outlet.read_text(),
        "metrics": service.request("GET", "/metrics").text,
        "description": service.request("GET", "/openapi.json").text + service.request("GET", "/docs").text,
        "doctor": service.cli("doctor").stdout,
        "credential": service.ok("credential", "show", "1", "--domain", "default"),
        "directory": service.ok("directory", "show", "hq", "--domain", "default"),
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
    assert not [key for key in fed.keys if key in octets]


def test_something_was_fed(fed: Fed) -> None:
    """The ways in were taken: logins were decided, providers set, and refusals answered. The operations that have a
    secret of a directory, an agent or a wallet did what they were asked for."""
    assert len(fed.keys) == 2
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
        assert [answer for answer in fed.answers if re.match(rf"\S*/{name} 200 ", answer)], name
    assert len(fed.service.rows("select id from events")) >= 6
    statuses = [int(re.split(r"\s", answer)[1]) for answer in fed.answers]
    assert {200, 400} <= set(statuses)
    assert not [answer for answer in fed.answers if " 500 " in answer]
    lines = [json.loads(line) for line in fed.service.log().splitlines() if line.startswith("{")]
    assert {"login", "mfa_provider_set"} <= {line["event"] for line in lines}

"""`sallyport wallet`: the commands of a holder over HTTP, with the key in a file, and the commands of an admin."""

import json
import subprocess
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import PROGRAM

SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}


class Corp:
    """A domain with an issuer and the user ann. Ann's wallet is the file `path`."""

    def __init__(self, service: Service, name: str, path: Path) -> None:
        self.service = service
        self.path = path
        self.domain = int(add_domain(service, name))
        add_user(service, name, "ann")
        made = self.ask("/api/v1/did/createIssuerDid", domainId=self.domain, method="key", name=name)
        self.issuer = made["id"]
        self.ask("/api/v1/schema/createSchema", author=self.issuer, name="Badge", schema=SCHEMA, sign=False)
        listed = self.ask("/api/v1/credential/credentialSchemaList", domainId=self.domain, issuerDid=self.issuer)
        self.schema = listed[0]["id"]
        address = f"ann@{name}.example"
        self.wallet = self.ask(
            "/api/v1/walletService/registerWalletUser", domainId=self.domain, username="ann", emailAddress=address
        )
        self.address = address

    def ask(self, path: str, **body: Any) -> Any:
        """Run an operation as an admin."""
        return self.service.post(path, body)

    def run(self, *words: str, secrets: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run `sallyport wallet WORDS` with ann's file.

        secrets: whether walletKey and token are given on standard input.
        """
        given = f"{self.wallet['walletKey']}\n{self.wallet['token']}\n" if secrets else ""
        return self.service.cli("wallet", *words, "--file", str(self.path), input=given.encode())

    def init(self, *words: str) -> str:
        """Create ann's wallet, register its DID with the service, and return the DID."""
        url = f"http://127.0.0.1:{self.service.ports.http}"
        named = ("--service", url, "--email", self.address, "--wallet-id", str(self.wallet["walletId"]))
        done = self.run("init", "--json", *named, *words, secrets=True)
        assert done.returncode == 0, done.stderr
        made = json.loads(done.stdout)
        if made["publicKeyJwk"] is not None:
            body = {"domainId": self.domain, "method": "key", "walletUserId": self.wallet["walletId"], "issuerId": 0}
            known = self.ask("/api/v1/did/createHolderDid", **body, name="ann", publicKeyJwk=made["publicKeyJwk"])
            assert known["id"] == made["did"]
        return str(made["did"])

    def issue(self, holder: str) -> int:
        """Issue a credential into ann's wallet, and return its ID."""
        body = {"domainId": self.domain, "issuerDid": self.issuer, "holderDid": holder, "schemaId": self.schema}
        made = self.ask(
            "/api/v1/credential/createCredential", **body, credentialName="Badge", metadata={"epmUsername": "ann"}
        )
        wallet = self.wallet["walletId"]
        self.ask("/api/v1/walletService/assignWalletUser", walletId=wallet, userId=wallet, credentialId=made["id"])
        return int(made["id"])


@pytest.fixture
def corp(service: Service, tmp_path: Path, request: pytest.FixtureRequest) -> Corp:
    """Return a new domain with an issuer and a wallet."""
    name = "".join(each for each in request.node.name if each.isalnum()).lower()[:40]
    return Corp(service, name, tmp_path / "wallet")


def test_a_login_is_answered_by_the_wallet_command(corp: Corp) -> None:
    """`init` makes a key, `poll` shows the credential, and `accept` accepts it. `present` accepts or declines a pending
    login.
    """
    holder = corp.init("--curve", "P-256")
    credential = corp.issue(holder)
    polled = json.loads(corp.run("poll", "--json").stdout)
    assert [(each["credentialId"], each["status"]) for each in polled] == [(credential, "Assigned")]
    assert corp.run("accept", str(credential)).returncode == 0
    assert corp.run("present", "--yes").returncode == 1  # no login is pending
    add_client(corp.service, "nas", "127.8.1.1", str(corp.domain))
    scope = {"orgId": 1, "tenantId": 1, "domainId": corp.domain}
    corp.ask("/ad/SetMFAProvider", **scope, provider="wallet", issuerDid=corp.issuer)
    corp.ask("/ad/updateDomainEnforcement", **scope, enforcementMode="enforce")
    with RadiusClient(corp.service.ports.auth, SECRET, source="127.8.1.1", timeout=60) as client:
        watching = subprocess.Popen(
            [PROGRAM, "wallet", "present", "--watch", "--yes", "--every", "0.2", "--file", str(corp.path)],
            env=corp.service.environ,
            stderr=subprocess.PIPE,
        )
        try:
            assert client.login("ann", "hello") == ACCESS_ACCEPT
            assert client.login("ann", "hello") == ACCESS_ACCEPT
            assert watching.poll() is None
        finally:
            watching.terminate()
            _, output = watching.communicate(timeout=30)
        assert output.count(b"Login of ann at") == 2
        packet = client.packet("ann", "hello")
        client.send(packet)
        deadline = time.monotonic() + 30
        while (done := corp.run("present", "--decline")).returncode:
            assert time.monotonic() < deadline, done.stderr
        assert client.receive(packet)[0] == ACCESS_REJECT


def test_an_ignored_credential_is_not_shown(corp: Corp) -> None:
    credential = corp.issue(corp.init())
    assert corp.run("ignore", str(credential)).returncode == 0
    assert json.loads(corp.run("poll", "--json").stdout) == []


def test_the_service_can_keep_the_key(corp: Corp) -> None:
    """With --did the file contains no key, and the service signs if it is given the walletKey."""
    holder = corp.ask(
        "/api/v1/did/createHolderDid",
        domainId=corp.domain,
        method="jwk",
        walletUserId=corp.wallet["walletId"],
        issuerId=0,
        name="ann",
    )["id"]
    assert corp.init("--did", holder) == holder
    corp.issue(holder)
    corp.ask("/api/v1/instances/addInstance", domainId=corp.domain, instanceName=corp.address)
    corp.ask("/api/v1/verifierService/issuePR", issuerDid=corp.issuer, holderDid=holder, endpoint=corp.address)
    done = corp.run("present", "--yes")
    assert done.returncode == 0 and "presentation accepted" in done.stderr
    assert json.loads(corp.path.read_text())["key"] == ""


def test_present_uses_the_credential_of_its_did(corp: Corp) -> None:
    """A wallet has two DIDs. `present` uses the credential of the DID in the file, although the other credential is
    older.
    """
    body = {"domainId": corp.domain, "method": "jwk", "walletUserId": corp.wallet["walletId"]}
    corp.issue(corp.ask("/api/v1/did/createHolderDid", **body, name="other")["id"])
    holder = corp.init()
    corp.issue(holder)
    corp.ask("/api/v1/instances/addInstance", domainId=corp.domain, instanceName=corp.address)
    corp.ask("/api/v1/verifierService/issuePR", issuerDid=corp.issuer, holderDid=holder, endpoint=corp.address)
    done = corp.run("present", "--yes")
    assert done.returncode == 0 and "presentation accepted" in done.stderr


class Starting(BaseHTTPRequestHandler):
    """A service that is not ready yet. `again` is set when the second request arrives."""

    again = Event()
    asked = 0

    def do_POST(self) -> None:
        """Send status 503, as a proxy would do."""
        Starting.asked += 1
        if Starting.asked > 1:
            self.again.set()
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Discard the message."""


def test_watch_retries_while_the_service_is_unavailable(corp: Corp) -> None:
    corp.init()
    with ThreadingHTTPServer(("127.0.0.1", 0), Starting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        held = json.loads(corp.path.read_text())
        corp.path.write_text(json.dumps({**held, "service": f"http://127.0.0.1:{server.server_port}"}))
        command = [PROGRAM, "wallet", "present", "--watch", "--yes", "--every", "0.2", "--file", str(corp.path)]
        watching = subprocess.Popen(command, env=corp.service.environ, stderr=subprocess.PIPE)
        try:
            assert Starting.again.wait(30)
        finally:
            watching.terminate()
            _, output = watching.communicate(timeout=30)
            server.shutdown()
    assert b"waiting: " in output and watching.returncode != 1
    assert corp.run("present", "--yes").returncode == 1


def test_errors_are_reported_without_secrets(corp: Corp) -> None:
    """The exit status is 1 for a missing file, for a wrong walletKey, for an unreachable service, and if the file
    already exists.
    """
    missing = corp.run("poll")
    assert missing.returncode == 1 and "wallet init" in missing.stderr
    corp.init()
    held = json.loads(corp.path.read_text())
    corp.path.write_text(json.dumps({**held, "wallet_key": "wk_somebody_elses"}))
    wrong = corp.run("poll")
    assert wrong.returncode == 1 and "invalid walletKey" in wrong.stderr
    corp.path.write_text(json.dumps({**held, "service": "http://127.0.0.1:9"}))
    away = corp.run("present")
    assert away.returncode == 1 and "no answer" in away.stderr
    output = missing.stderr + wrong.stderr + away.stderr
    assert not any(secret in output for secret in (held["wallet_key"], held["token"], held["key"], "wk_somebody_elses"))
    again = corp.run("init", "--service", "x", "--email", "x", "--wallet-id", "1", secrets=True)
    assert again.returncode == 1 and "exists: give another --file" in again.stderr


# --- commands of an admin ---------------------------------------------------------------------------------------------


@pytest.fixture
def bare(service: Service, request: pytest.FixtureRequest) -> str:
    """Add a new domain with the user ann, and return its name."""
    name = "".join(each for each in request.node.name if each.isalnum()).lower()[:40]
    add_domain(service, name)
    add_user(service, name, "ann")
    return name


def admin(service: Service, *words: str) -> Any:
    """Return the parsed JSON of `sallyport wallet WORDS --json`."""
    return json.loads(service.ok("wallet", *words, "--json"))


def test_a_wallet_is_registered_with_its_did(service: Service, bare: str, tmp_path: Path) -> None:
    """`register` prints the walletKey and the token that `init` needs. The output of `init` registers the DID, and
    `list` shows it.
    """
    path, public = tmp_path / "wallet", tmp_path / "did.json"
    registered = service.cli("wallet", "register", "ann", "--domain", bare, "--email", "ann@x.example")
    assert registered.returncode == 0 and len(registered.stdout.splitlines()) == 2
    (row,) = admin(service, "list", "--domain", bare)
    wallet = str(row["walletId"])
    assert (
        f"wallet init --wallet-id {wallet}" in registered.stderr and f"--domain {bare} --key FILE" in registered.stderr
    )
    url = f"http://127.0.0.1:{service.ports.http}"
    words = ("--service", url, "--email", "ann@x.example", "--wallet-id", wallet, "--file", str(path), "--json")
    made = service.cli("wallet", "init", *words, input=registered.stdout)
    public.write_text(made.stdout)
    did = service.ok("wallet", "register", "ANN", "--domain", bare, "--key", str(public)).strip()
    assert did == json.loads(made.stdout)["did"]
    again = service.cli("wallet", "register", "ann", "--domain", bare, "--key", str(public))
    assert (again.returncode, again.stdout) == (1, "")
    (row,) = admin(service, "list", "--domain", bare)
    assert (row["username"], row["dids"], row["noOfcredential"]) == ("ann", [did], 0)
    (held,) = admin(service, "list", "--file", str(path))
    assert held == {"service": url, "email": "ann@x.example", "walletId": int(wallet), "did": did, "key": "Ed25519"}
    key = json.loads(path.read_text())["key"]
    assert not any(secret in service.ok("wallet", "list") for secret in (*registered.stdout.split(), key))


def test_a_wallet_with_a_service_key_is_registered(service: Service, bare: str) -> None:
    """With --service-key the wallet and its DID are created by one command. If the creation of the DID fails, the
    walletKey and the token are still printed.
    """
    words = ("register", "bob", "--domain", bare, "--email")
    made = admin(service, *words, "bob@x.example", "--service-key")
    assert made["did"].startswith("did:key:") and made["walletKey"] and made["token"]
    failed = service.cli("wallet", *words, "b2@x.example", "--service-key", "--issuer", "did:key:nobody")
    assert failed.returncode == 1 and len(failed.stdout.splitlines()) == 2
    several = service.cli("wallet", "register", "bob", "--domain", bare, "--service-key")
    assert several.returncode == 1 and str(made["walletId"]) in several.stderr
    for name in (str(made["walletId"]), "BOB@x.example"):
        assert service.ok("wallet", "register", name, "--domain", bare, "--service-key").startswith("did:key:")
    (row,) = admin(service, "list", "--search", "bob@x", "--domain", bare)
    assert len(row["dids"]) == 3
    taken = service.cli("wallet", *words, "BOB@x.example")
    assert (taken.returncode, taken.stdout) == (1, "") and "e-mail address" in taken.stderr
    renewed = admin(service, "reset", "bob@x.example", "--domain", bare)
    assert renewed["walletId"] == made["walletId"] and renewed["walletKey"] != made["walletKey"]


def test_credentials_are_assigned_to_a_wallet_and_users(corp: Corp) -> None:
    """`assign` adds a credential to a wallet or to a user. With --replace it replaces the user's credentials."""
    holder, domain = corp.init(), str(corp.domain)
    body = {"domainId": corp.domain, "issuerDid": corp.issuer, "holderDid": holder, "schemaId": corp.schema}
    numbers = [
        str(corp.ask("/api/v1/credential/createCredential", **body, credentialName=f"c{n}", metadata={})["id"])
        for n in range(3)
    ]

    def assigned(*words: str) -> None:
        corp.service.ok("wallet", "assign", "ann", "--domain", domain, *words)

    def of_ann() -> str:
        listed = corp.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=corp.domain)["epmUsers"]
        return str(listed[0]["credentialId"])

    assigned("--credential", numbers[0], "--credential", numbers[1])
    assigned("--credential", numbers[0], "--credential", numbers[1])
    (row,) = admin(corp.service, "list", "--domain", domain)
    assert row["noOfcredential"] == 2 and not of_ann()
    assigned("--user", "ANN", "--credential", numbers[1])
    before = of_ann()
    assigned("--user", "ann", "--credential", numbers[2], "--replace")
    (row,) = admin(corp.service, "list", "--domain", domain)
    assert row["noOfcredential"] == 3 and before != of_ann() and before


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("register", "ann"), 2, "--email is missing: give it for a new wallet"),
        (
            ("register", "ann", "--email", "a@x", "--key", "f", "--service-key"),
            2,
            "--key and --service-key exclude each other",
        ),
        (("register", "ann", "--email", "nonsense"), 1, "must be an e-mail address"),
        (("register", "ann", "--email", "a@x", "--key", "/nowhere"), 1, "--key: /nowhere: No such file"),
        (("register", "ann", "--email", "a@x", "--key", "/usr/bin/env"), 1, "is not the output of"),
        (("register", "nobody", "--service-key"), 1, "no wallet nobody"),
        (("register", "x" * 300, "--email", "a@x"), 1, "NAME: "),
        (("register", "\x1b[31m", "--email", "a@x"), 1, "NAME: "),
        (("assign", "ann"), 2, "--credential and --user are missing"),
        (("assign", "ann", "--credential", "1", "--replace"), 2, "--replace needs --user"),
        (("assign", "ann", "--credential", "one"), 2, "one"),
        (("assign", "nobody", "--credential", "1"), 1, "no wallet nobody"),
        (("assign", "9" * 40, "--credential", "1"), 1, "no wallet"),
        (("reset", "nobody"), 1, "no wallet nobody"),
        (("list", "--file", "f"), 2, "--file cannot be combined with --domain or --search"),
    ],
)
def test_invalid_admin_arguments_are_refused(
    service: Service, words: tuple[str, ...], status: int, message: str
) -> None:
    """The message for an invalid argument is one line, and no wallet is created."""
    refused = service.cli("wallet", *words, "--domain", "default")
    assert (refused.returncode, refused.stdout) == (status, "") and message in refused.stderr, refused.stderr
    assert "\x1b" not in refused.stderr and admin(service, "list", "--domain", "default") == []


def test_assigning_across_domains_is_refused(service: Service, corp: Corp) -> None:
    """A credential, a wallet or a user of another domain is not found, and nothing is assigned."""
    credential = corp.issue(corp.init())
    made = admin(service, "register", "eve", "--domain", "default", "--email", "eve@x.example")
    for name, domain, *words in (
        ("eve", "default", "--credential", str(credential)),
        ("ann", "default", "--user", "ann"),
        ("eve", "default", "--user", "ann"),
        ("ann", str(corp.domain), "--user", "eve"),
    ):
        refused = service.cli("wallet", "assign", name, "--domain", domain, *words)
        assert refused.returncode == 1 and ("not found" in refused.stderr or "no " in refused.stderr)
    (row,) = admin(service, "list", "--domain", "default")
    assert (row["walletId"], row["noOfcredential"]) == (made["walletId"], 0)

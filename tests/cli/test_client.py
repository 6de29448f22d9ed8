"""`sallyport client`: changes apply to the next packet, and given secrets are not printed."""

import json
import time
from contextlib import closing

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_REQUEST
from tests.cli import OTHER_TENANT, SECRET, TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import RunningService
from tests.waiting import eventually


def listed(service: RunningService, name: str) -> dict[str, object]:
    """Return a client from the list."""
    return next(row for row in json.loads(service.ok("client", "list", "--json")) if row["name"] == name)


def answers(
    service: RunningService, secret: str | bytes, source: str, *, signed: bool = True, within: float = 10.0
) -> bool:
    """Return whether a login from an address gets any reply."""
    with RadiusClient(service.ports.auth, secret, source=source, timeout=within) as client:
        try:
            return client.login("nobody", "x", signed=signed) in {ACCESS_ACCEPT, ACCESS_REJECT}
        except TimeoutError:
            return False


def test_a_generated_secret_is_printed_alone(service: Service) -> None:
    """Standard output is only the generated secret and a line end. The next packet of the client is answered with this
    secret.
    """
    made = service.program("client", "add", "made", "--address", "127.1.0.1", *TENANT)
    assert made.returncode == 0
    assert len(made.stdout) == 33
    assert made.stdout.strip().isalnum()
    assert answers(service, made.stdout.strip(), "127.1.0.1")


def test_a_given_secret_is_never_printed(service: Service) -> None:
    """Neither `add` nor `list` nor the log shows the secret."""
    added = service.cli("client", "add", "given", "--address", "127.1.0.2", "--secret", SECRET, *TENANT)
    assert (added.returncode, added.stdout) == (0, "")
    assert answers(service, SECRET, "127.1.0.2")
    output = added.stderr + service.ok("client", "list") + service.ok("client", "list", "--json") + service.log()
    assert SECRET not in output
    assert SECRET.encode().hex() not in output


def test_a_secret_from_standard_input_is_taken_as_octets(service: Service) -> None:
    """`--secret -` reads the first line without its line end as octets, in any encoding."""
    arguments = ("--address", "127.1.0.3", "--secret", "-", *TENANT)
    assert service.program("client", "add", "octets", *arguments, input=b"gr\xfcn\xff\r\n").returncode == 0
    assert answers(service, b"gr\xfcn\xff", "127.1.0.3")


def test_weak_secrets_and_ranges_are_warned_about(service: Service) -> None:
    """Warnings are printed on standard error, so that a script reads only the secret."""
    weak = service.cli("client", "add", "weak", "--address", "127.1.0.4", "--secret", "testing123", *TENANT)
    assert weak.returncode == 0
    assert "a well-known example secret" in weak.stderr
    wide = service.cli("client", "add", "wide", "--address", "127.2.0.0/16", *TENANT)
    assert len(wide.stdout.split()) == 1
    assert "has no effect" in wide.stderr


@pytest.mark.parametrize(("source", "scope"), [("127.1.0.5", TENANT), ("127.1.0.6", ())])
def test_a_removed_client_is_not_answered(service: Service, source: str, scope: tuple[str, ...]) -> None:
    """A client is selected by its name. The tenant is needed only if several tenants have a client of that name."""
    add_client(service, source, source)
    assert answers(service, SECRET, source)
    removed = service.cli("client", "remove", source, *scope)
    assert (removed.returncode, removed.stdout) == (0, "")
    assert not answers(service, SECRET, source, within=0.5)


def test_an_ambiguous_name_needs_its_tenant(service: Service) -> None:
    """If clients of two tenants have the name, `remove` requires the tenant."""
    add_client(service, "both", "127.1.0.7")
    add_client(service, "both", "127.1.0.8", org=9, tenant=4)
    assert service.cli("client", "remove", "both").returncode == 1
    assert service.cli("client", "remove", "both", "--org", "1").returncode == 2
    service.ok("client", "remove", "both", *OTHER_TENANT)
    assert listed(service, "both")["address"] == "127.1.0.7"


def test_unlatch_accepts_unsigned_requests_again(service: Service) -> None:
    """A client with a single address latches at its first signed request. After `unlatch`, unsigned requests are
    accepted until the next signed one.
    """
    add_client(service, "latch", "127.1.0.9")
    assert answers(service, SECRET, "127.1.0.9", signed=False)
    assert answers(service, SECRET, "127.1.0.9", signed=True)
    assert not answers(service, SECRET, "127.1.0.9", signed=False, within=0.5)
    assert listed(service, "latch")["signatureRequired"] is True
    assert "auto, required" in service.ok("client", "list")
    service.ok("client", "unlatch", "latch", *TENANT)
    assert answers(service, SECRET, "127.1.0.9", signed=False)


def test_the_first_domain_is_the_default(service: Service) -> None:
    """--domain takes a name or an ID. Devices, and user names without a realm, belong to the first domain."""
    first, second = add_domain(service, "first"), add_domain(service, "second", realms=["second.example"])
    named = ("--domain", "First", "--domain", second)
    service.ok("client", "add", "ordered", "--address", "127.1.0.10", "--secret", SECRET, *TENANT, *named)
    for domain in ("first", "second"):
        add_user(service, domain, "ann", f"in {domain}")
    assert listed(service, "ordered")["domainIds"] == [int(first), int(second)]
    with closing(RadiusClient(service.ports.auth, SECRET, source="127.1.0.10")) as client:
        assert client.login("ann", "in first") == ACCESS_ACCEPT
        assert client.login("ann@second.example", "in second") == ACCESS_ACCEPT
    assert "first, second" in service.ok("client", "list")


def test_add_stores_each_option(service: Service) -> None:
    options = ("--product", "Cisco ISE", "--require-message-authenticator", "yes", "--limit-proxy-state", "no")
    service.ok("client", "add", "ise", "--address", "2001:db8::7", *TENANT, *options, "--password-verified")
    row = listed(service, "ise")
    kept = ("product", "requireMessageAuthenticator", "limitProxyState", "passwordVerified", "address", "org")
    assert [row[name] for name in kept] == ["Cisco ISE", "yes", "no", True, "2001:db8::7", 1]


def test_set_changes_only_the_given_fields(service: Service) -> None:
    """`set` changes only the given fields, for the next packet. The secret stays the same and is not printed."""
    add_domain(service, "set-1"), add_domain(service, "set-2")
    add_client(service, "change", "127.1.2.1", "set-1")
    before = listed(service, "change")
    given = {
        "--address": "127.1.2.2",
        "--product": "Cisco ISE",
        "--require-message-authenticator": "yes",
        "--limit-proxy-state": "no",
        "--password-verified": "yes",
        "--coa-port": "1700",
        "--tls-name": "nas.example.com",
        "--tls-fingerprint": "ab" * 32,
        "--mac-form": "no-station",
        "--domain": "set-2",
        "--name": "changed",
    }
    fields = dict(zip(given, (
        "address", "product", "requireMessageAuthenticator", "limitProxyState", "passwordVerified", "coaPort",
        "tlsName", "tlsFingerprint", "macForms", "domainIds", "name",
    ), strict=True))  # fmt: skip
    for option, value in given.items():
        done = service.cli("client", "set", "change", option, value, *TENANT)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        after = listed(service, "changed" if option == "--name" else "change")
        learned = {"signatureRequired"} if option == "--require-message-authenticator" else set()
        assert {name for name in after if after[name] != before[name]} - learned == {fields[option]}
        before = after
    assert answers(service, SECRET, "127.1.2.2")
    assert not answers(service, SECRET, "127.1.2.1", within=0.5)
    service.ok("client", "set", "changed", "--all-domains", "--password-verified", "no", "--tls-name", "")
    assert (listed(service, "changed")["domainIds"], listed(service, "changed")["tlsName"]) == ([], "")


def test_forms_of_mac_authentication_bypass(service: Service) -> None:
    """`add` and `set` take forms, and the password of all stations from standard input. The list shows the forms."""
    add_domain(service, "things")
    service.ok("bypass", "add", "02aabbccdd02", "--domain", "things")
    forms = ("--mac-form", "password", "--mac-form", "no-station")
    place = ("--address", "127.1.2.77", "--secret", SECRET, *TENANT, "--domain", "things")
    done = service.cli("client", "add", "switch", *place, *forms, "--mac-password", "-", input=b"word of all\n")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert listed(service, "switch")["macForms"] == ["no-station", "password"]

    def admits(word: str) -> bool:
        with closing(RadiusClient(service.ports.auth, SECRET, source="127.1.2.77")) as client:
            return client.login("02aabbccdd02", word) == ACCESS_ACCEPT

    assert (admits("word of all"), admits("another word")) == (True, False)
    done = service.cli("client", "set", "switch", "--mac-password", "-", input=b"another word\n")
    assert (done.returncode, admits("another word")) == (0, True), done.stderr
    service.ok("client", "set", "switch", "--no-mac-form")
    assert (listed(service, "switch")["macForms"], admits("another word")) == ([], False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mac-password", "word"), "accepts only -"),
        (("--mac-password", "-", "--secret", "-"), "cannot both read standard input"),
        (("--mac-password", "-"), "--mac-password is empty"),
        (("--mac-form", "password", "--no-mac-form"), "cannot be used together"),
        (("--mac-form", "everything"), '"everything" is not accepted'),
    ],
)
def test_wrong_forms_of_mac_authentication_bypass(service: Service, options: tuple[str, ...], message: str) -> None:
    """A wrong use of the options is refused, without a word of the password."""
    done = service.cli("client", "set", "none", *options, input=b"\n")
    assert done.returncode == 2
    assert message in done.stderr


def test_set_replaces_the_secret(service: Service) -> None:
    """The new secret is read from standard input in any encoding. If it is generated, only the secret is printed."""
    add_client(service, "rekey", "127.1.2.3")
    done = service.cli("client", "set", "rekey", "--secret", "-", input=b"gr\xfcn and long enough\xff\n")
    assert (done.returncode, done.stdout) == (0, "")
    assert answers(service, b"gr\xfcn and long enough\xff", "127.1.2.3")
    made = service.ok("client", "set", "rekey", "--new-secret").strip()
    assert len(made) == 32 and answers(service, made, "127.1.2.3")
    assert not answers(service, SECRET, "127.1.2.3", within=0.5)
    weak = service.cli("client", "set", "rekey", "--secret", "-", input=b"secret\n")
    assert weak.returncode == 0 and "a well-known example secret" in weak.stderr


def test_a_new_address_keeps_the_latch(service: Service) -> None:
    """If a client has sent signed requests, it must also sign at its new address. The message names `unlatch`."""
    add_client(service, "moved", "127.1.2.4")
    assert answers(service, SECRET, "127.1.2.4", signed=True)
    done = service.cli("client", "set", "moved", "--address", "127.1.2.5")
    assert "sallyport client unlatch moved" in done.stderr
    assert not answers(service, SECRET, "127.1.2.5", signed=False, within=0.5)
    service.ok("client", "unlatch", "moved")
    assert answers(service, SECRET, "127.1.2.5", signed=False)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("settled",), 2, "nothing to change"),
        (("settled", "--secret", "in-the-open"), 2, "--secret accepts only -"),
        (("settled", "--secret", "-", "--new-secret"), 2, "--secret and --new-secret cannot be used together"),
        (("settled", "--secret", "-"), 2, "--secret is empty"),
        (("settled", "--domain", "default", "--all-domains"), 2, "--domain and --all-domains cannot be used together"),
        (("settled", "--org", "1", "--product", "x"), 2, "--org and --tenant go together"),
        (("settled", "--address", "127.1.2.7"), 1, "address"),
        (("settled", "--address", "127.1.2.300"), 1, "address"),
        (("settled", "--name", "Taken"), 1, "name"),
        (("settled", "--domain", "nowhere"), 1, "domain"),
        (("settled", "--product", "x" * 100_000), 1, "product"),
        (("nobody", "--product", "x"), 1, 'RADIUS client "nobody" not found; existing: '),
        (("settled", "--product", "x", *OTHER_TENANT), 1, 'RADIUS client "settled" not found'),
    ],
)
def test_set_refuses_invalid_values(service: Service, arguments: tuple[str, ...], status: int, message: str) -> None:
    """The message for an invalid value is on standard error, standard output is empty, and the client is unchanged."""
    if "settled" not in service.clients():
        add_client(service, "settled", "127.1.2.6")
        add_client(service, "taken", "127.1.2.7")
        add_client(service, "elsewhere", "127.1.2.8", org=9, tenant=4)
    before = listed(service, "settled")
    refused = service.cli("client", "set", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "") and message in refused.stderr
    assert "in-the-open" not in refused.stderr and "x" * 100 not in refused.stderr
    assert listed(service, "settled") == before


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("clash-2", "--address", "127.1.1.1", *TENANT), 1),
        (("CLASH", "--address", "127.1.1.2", *TENANT), 1),
        (("foreign", "--address", "127.1.1.0/24", *OTHER_TENANT), 1),
        (("host", "--address", "nas.example.com", *TENANT), 1),
        (("lost", "--address", "127.1.1.3", *TENANT, "--domain", "nowhere"), 1),
        (("long", "--address", "127.1.1.3", *TENANT, "--secret", "x" * 129), 1),
        (("empty", "--address", "127.1.1.3", *TENANT, "--secret", ""), 2),
        (("maybe", "--address", "127.1.1.3", *TENANT, "--require-message-authenticator", "maybe"), 2),
        (("none", *TENANT), 2),
    ],
)
def test_add_refuses_invalid_values(service: Service, arguments: tuple[str, ...], status: int) -> None:
    """A name or address that is taken, a range of another tenant, and a missing address are refused. Standard output is
    empty.
    """
    if "clash" not in service.clients():
        add_client(service, "clash", "127.1.1.1")
    refused = service.cli("client", "add", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert refused.stderr


def test_a_client_is_added_without_a_service(stopped: RunningService) -> None:
    """A client is added while no service runs. The service that is started later answers it."""
    stopped.ok("db", "migrate")
    secret = stopped.ok("client", "add", "early", "--address", "127.1.0.1", *TENANT)
    assert listed(stopped, "early")["address"] == "127.1.0.1"
    stopped.start()
    assert answers(stopped, secret, "127.1.0.1")


def send_login(
    service: Service, source: str, secret: str = SECRET, *, signed: bool = True, **attributes: object
) -> None:
    """Send a login without waiting for a reply."""
    with RadiusClient(service.ports.auth, secret, source=source) as client:
        client.send(client.packet("ann", "hello", signed=signed, **attributes))


def unknown(service: Service, address: str) -> dict[str, object]:
    """Wait until `client unknown` lists the address, and return its entry."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = json.loads(service.ok("client", "unknown", "--json"))
        if found := [row for row in rows if row["address"] == address]:
            return dict(found[0])
    raise AssertionError(f"{address} is not listed")


def test_an_unknown_sender_is_listed_and_added(service: Service) -> None:
    """`client unknown` lists the request of an unknown sender. `client add --from-unknown` adds the sender as a client,
    which is then answered.
    """
    send_login(service, "127.66.0.1", NAS_IDENTIFIER=b"lobby")
    row = unknown(service, "127.66.0.1")
    assert (row["verdict"], row["packet"], row["nas_identifier"]) == (
        "no RADIUS client has this address", "Access-Request", "lobby",
    )  # fmt: skip
    secret = service.ok("client", "add", "lobby", "--from-unknown", "--address", "127.66.0.1", *TENANT)
    assert listed(service, "lobby")["address"] == "127.66.0.1"
    assert answers(service, secret, "127.66.0.1")
    assert "127.66.0.1" not in service.ok("client", "unknown")


def test_a_remedy_is_printed_once(service: Service) -> None:
    """Two kinds of packets of one sender with the same cause have two lines, and one remedy."""
    add_client(service, "twice", "127.66.0.2", "default")
    send_login(service, "127.66.0.2", "a wrong secret")
    with RadiusClient(service.ports.acct, SECRET, source="127.66.0.2") as client:
        client.send(bytes((ACCOUNTING_REQUEST, 1, 0, 20)) + bytes(16))
    eventually(lambda: service.ok("client", "unknown", "--json").count('"127.66.0.2"') == 2)
    notes = [line for line in service.cli("client", "unknown").stderr.splitlines() if line.startswith("127.66.0.2:")]
    assert len(notes) == 1


def test_only_a_listed_sender_can_be_added(service: Service) -> None:
    """--from-unknown refuses an address that has sent nothing, or that is registered. Without --from-unknown an address
    must be given."""
    refused = service.cli("client", "add", "nobody", "--from-unknown", "--address", "127.66.0.9", *TENANT)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "127.66.0.9 is not among the unknown addresses; it may be registered already" in refused.stderr
    assert service.cli("client", "add", "nobody", *TENANT).returncode == 2


@pytest.mark.parametrize(
    ("signed", "verdict"),
    [(True, "wrong secret"), (False, "wrong password or wrong shared secret")],
    ids=["signed", "unsigned"],
)
def test_a_wrong_secret_is_reported(service: Service, signed: bool, verdict: str) -> None:
    """A wrong signature shows that the secret is wrong. In a request without a signature, the password or the secret
    may be wrong.
    """
    name, address = f"forgetful-{signed}", f"127.66.1.{int(signed) + 1}"
    add_client(service, name, address, requireMessageAuthenticator="no")
    send_login(service, address, "quite another secret", signed=signed)
    row = unknown(service, address)
    assert (row["verdict"], row["client"]) == (verdict, name)
    assert f"{address} of {name}: 1 packet" in service.ok("doctor")


def test_noise_cannot_be_added_as_a_client(service: Service) -> None:
    """A packet that is not RADIUS is listed as noise. Its sender cannot be added as a client."""
    with RadiusClient(service.ports.auth, SECRET, source="127.66.0.3") as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
    assert unknown(service, "127.66.0.3")["verdict"] == "noise: no RADIUS request"
    assert service.cli("client", "add", "x", "--from-unknown", "--address", "127.66.0.3", *TENANT).returncode == 1

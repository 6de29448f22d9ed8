"""/network_device/AddClient, ListClients, UpdateClient and DeleteClient."""

from typing import Any

import pytest

from sallyport.base.errors import PacketError
from tests.api.world import PASSWORD, SECRET, Tenant, World

ADD = "/network_device/AddClient"
LIST = "/network_device/ListClients"
UPDATE = "/network_device/UpdateClient"
DELETE = "/network_device/DeleteClient"
ACTIVITY = "/network_device/ClientActivity"
NOT_FOUND = (404, "client not found")
ACCEPT, REJECT = 2, 3


def listed(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return the tenant's clients."""
    answer = tenant.ask(LIST, **fields)
    assert set(answer) == {"clients", "totalCount"}
    clients: list[dict[str, Any]] = answer["clients"]
    return clients


def logs_in(tenant: Tenant, address: str, secret: str = SECRET, user: str = "ann", **packet: Any) -> bool:
    """Return whether a login from an address is accepted. Return False if it is rejected or not answered."""
    with tenant.world.service.radius(secret, source=address) as nas:
        nas.sock.settimeout(0.3)
        try:
            return nas.login(user, PASSWORD, **packet) == ACCEPT
        except (TimeoutError, PacketError):
            return False


def test_an_added_client_is_answered_at_once(world: World, tenant: Tenant) -> None:
    """The next packet of a new client is answered. The answer of the operation has the client's id and secret."""
    address = world.address()
    assert not logs_in(tenant, address)
    answer = tenant.ask(ADD, name="nps", address=address, secret=SECRET, domainId=tenant.domain)
    client_id = answer.pop("clientId")
    assert isinstance(client_id, int)
    assert answer == {"code": 200, "status": "Success", "message": "client added", "secret": SECRET, "warnings": []}
    assert logs_in(tenant, address)


def test_when_a_client_was_heard(world: World, tenant: Tenant) -> None:
    """Each client has the time of its last request, and of its last request without Message-Authenticator. Both are
    empty for a client that was never heard. Clients of another tenant are not listed."""
    signs, lax, silent = (world.address() for _ in range(3))
    for name, address in (("signs", signs), ("lax", lax), ("silent", silent)):
        tenant.ask(ADD, name=name, address=address, secret=SECRET, requireMessageAuthenticator="no")
    assert logs_in(tenant, signs)
    assert logs_in(tenant, lax, signed=False)
    tenant.ask("/network_device/ListStations", domainId=tenant.domain)  # writes the counts of devices to the store
    found = {each["name"]: each for each in tenant.ask(ACTIVITY)["clients"]}
    assert [found[name]["address"] for name in ("signs", "lax", "silent")] == [signs, lax, silent]
    assert found["signs"]["lastSeen"] and not found["signs"]["lastUnsigned"]
    assert found["lax"]["lastUnsigned"] == found["lax"]["lastSeen"] != ""
    assert (found["silent"]["lastSeen"], found["silent"]["lastUnsigned"]) == ("", "")
    assert set(found) == {each["name"] for each in listed(tenant)}
    page = tenant.ask(ACTIVITY, pageId=2, pageSize=1)
    assert ([each["name"] for each in page["clients"]], page["totalCount"]) == (["lax"], 3)
    unsigned = tenant.ask(ACTIVITY, state="unsigned")
    assert ([each["name"] for each in unsigned["clients"]], unsigned["totalCount"]) == (["lax"], 1)
    wanted = tenant.ask(ACTIVITY, clientIds=found["silent"]["clientId"])
    assert [each["name"] for each in wanted["clients"]] == ["silent"]


def test_a_secret_is_made_where_none_is_given(world: World, tenant: Tenant) -> None:
    """A client that is added without a secret gets a long random one, which is shown once."""
    given: list[tuple[str, dict[str, Any]]] = [("a", {}), ("b", {"secret": ""}), ("c", {"secret": None})]
    for name, fields in given:
        address = world.address()
        secret = tenant.ask(ADD, name=name, address=address, **fields)["secret"]
        assert len(secret) == 32
        assert logs_in(tenant, address, secret)
        assert secret not in str(listed(tenant))


def test_the_fields_of_a_client(tenant: Tenant) -> None:
    """The list has all fields except the secret. A field that was not given has its default."""
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    first = tenant.ask(ADD, name="a", address="203.0.113.1")["clientId"]
    second = tenant.ask(
        ADD, name="b", address="203.0.113.8/29", domainIds=[branch, str(tenant.domain)], product="Cisco ISE",
        requireMessageAuthenticator="YES", limitProxyState=False, passwordVerified="yes",
    )["clientId"]  # fmt: skip
    assert listed(tenant) == [
        {
            "clientId": first, "name": "a", "address": "203.0.113.1", "domainIds": [], "product": "",
            "requireMessageAuthenticator": "auto", "limitProxyState": "auto", "passwordVerified": False,
            "shadow": False, "signatureRequired": False, "proxyStateLimited": False, "coaPort": 3799,
            "tlsName": "", "tlsFingerprint": "", "macForms": [], "tags": {}, "note": "", "warnings": [],
        },
        {
            "clientId": second, "name": "b", "address": "203.0.113.8/29", "domainIds": [branch, tenant.domain],
            "product": "Cisco ISE", "requireMessageAuthenticator": "yes", "limitProxyState": "no",
            "passwordVerified": True, "shadow": False, "signatureRequired": True, "proxyStateLimited": False,
            "coaPort": 3799,
            "tlsName": "", "tlsFingerprint": "", "macForms": [], "tags": {}, "note": "", "warnings": [],
        },
    ]  # fmt: skip
    tenant.ask(DELETE, clientId=first)
    tenant.ask(DELETE, clientId=second)


def test_the_forms_of_mac_authentication_bypass(world: World, tenant: Tenant) -> None:
    """A client has the given forms, in one order. Its answers contain no password of the stations. An empty password
    keeps the present one, and without the form `password` it is gone."""
    address, station = world.address(), "02aabbccdd01"
    tenant.ask("/ad/AddBypassStation", domainId=tenant.domain, station=station)
    fields = {"macForms": ["password", "No-Station"], "macPassword": "a word of all"}
    client = tenant.ask(ADD, name="n", address=address, secret=SECRET, **fields)["clientId"]

    def admitted() -> bool:
        with tenant.world.service.radius(SECRET, source=address) as nas:
            return nas.login(station, "a word of all") == ACCEPT

    assert admitted()
    (shown,) = listed(tenant)
    assert shown["macForms"] == ["no-station", "password"]
    tenant.ask(UPDATE, clientId=client, name="m", macPassword="")
    assert admitted()
    refused = tenant.refused(UPDATE, clientId=client, address="203.0.113.0/29")
    assert refused == (400, "invalid macForms")
    tenant.ask(UPDATE, clientId=client, macForms="no-station")
    assert not admitted()
    assert tenant.refused(UPDATE, clientId=client, macForms=["password"]) == (400, "invalid macPassword")
    assert tenant.refused(UPDATE, clientId=client, macForms=["everything"]) == (400, "invalid macForms")
    assert "a word of all" not in str(listed(tenant))


@pytest.mark.parametrize("field", ["domainId", "domainIds"])
@pytest.mark.parametrize("as_array", [True, False])
def test_domains_are_named_one_or_many(world: World, tenant: Tenant, field: str, as_array: bool) -> None:
    """A client takes one domain or an array of domains, under either field name. The first domain is the default for
    user names without a realm.
    """
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    address = world.address()
    tenant.ask(ADD, name="n", address=address, secret=SECRET, **{field: [branch] if as_array else branch})
    assert listed(tenant)[0]["domainIds"] == [branch]
    tenant.user("bob", domain=branch)
    assert [logs_in(tenant, address, user=user) for user in ("bob", "bob@branch", "ann@corp")] == [True, True, False]


def test_lists_are_searched_and_paged(world: World, tenant: Tenant) -> None:
    """A case-insensitive search matches name, address and product.

    Entries are ordered by id, with 10 on a page by default, and never include those of another tenant.
    """
    for number in range(12):
        tenant.ask(ADD, name=f"Switch-{number}", address=world.address(), product="Cisco ISE" if number < 2 else "")
    other = world.tenant()
    other.ask(ADD, name="Switch-x", address=world.address())
    assert [len(listed(tenant)), tenant.ask(LIST)["totalCount"]] == [10, 12]
    names = [each["name"] for page in (1, 2, 3, 4) for each in listed(tenant, pageId=page, pageSize=4)]
    assert names == [f"Switch-{number}" for number in range(12)]
    assert [each["name"] for each in listed(tenant, search="CISCO")] == ["Switch-0", "Switch-1"]
    found = tenant.ask(LIST, search="switch-1", pageSize=2)
    assert ([each["name"] for each in found["clients"]], found["totalCount"]) == (["Switch-1", "Switch-10"], 3)
    (foreign,) = listed(other)
    assert foreign["name"] == "Switch-x"
    (first,) = listed(tenant, search="switch-1", pageSize=1)
    assert listed(tenant, clientId=first["clientId"]) == [first]
    assert listed(tenant, clientId=foreign["clientId"]) == []


@pytest.mark.parametrize("form", ["2001:DB8:9::7", "2001:0db8:9:0:0:0:0:7"])
def test_any_form_of_an_ipv6_address_finds_a_client(tenant: Tenant, form: str) -> None:
    """An address is stored in its canonical form and is found in any form. A second client with the same address is
    refused in any form.
    """
    client = tenant.ask(ADD, name="v6", address=form)["clientId"]
    (found,) = listed(tenant, search=form)
    assert found["address"] == "2001:db8:9::7"
    assert tenant.refused(ADD, name="again", address="2001:db8:9::7")[0] == 409
    tenant.ask(DELETE, clientId=client)


def test_taken_names_and_addresses(world: World, tenant: Tenant) -> None:
    """A name that the tenant already has in any letter case, and an address that any tenant has, are answered with 409.
    The message repeats neither. A range wider than /24 (IPv6: /64) is answered with 403. Ranges of the same tenant may
    overlap.
    """
    other = world.tenant()
    mine, theirs = world.address(), world.address()
    client = tenant.ask(ADD, name="NPS", address=mine)["clientId"]
    other.ask(ADD, name="nps", address=theirs)
    around = theirs.rpartition(".")[0] + ".0/24"
    for fields in (
        {"name": "nps", "address": world.address()},
        {"name": "other", "address": mine},
        {"name": "other", "address": theirs},
        {"name": "other", "address": around},
    ):
        code, text = tenant.refused(ADD, **fields)
        assert code == 409, fields
        assert not any(value in text for value in ("nps", mine, theirs, around))
    for address in ("127.0.0.0/8", "4000::/63"):
        code, text = tenant.refused(ADD, name="other", address=address)
        assert code == 403 and "several tenants" in text
        assert tenant.refused(UPDATE, clientId=client, address=address) == (code, text)
    assert tenant.refused(UPDATE, clientId=client, address=around)[0] == 409
    assert [each["address"] for each in listed(tenant)] == [mine]
    tenant.ask(ADD, name="range", address="192.0.2.0/25")
    tenant.ask(ADD, name="inner", address="192.0.2.7")
    for each in listed(tenant):
        tenant.ask(DELETE, clientId=each["clientId"])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"address": "203.0.113.5"}, "missing name"),
        ({"name": "n"}, "missing address"),
        ({"name": "", "address": "203.0.113.5"}, "invalid name"),
        ({"name": "a\nb", "address": "203.0.113.5"}, "invalid name"),
        ({"name": "n", "address": "host.example"}, "invalid address"),
        ({"name": "n", "address": ""}, "invalid address"),
        ({"name": "n", "address": "203.0.113.5", "secret": "hunter2" * 20}, "invalid secret"),
        ({"name": "n", "address": "203.0.113.5", "secret": ["hunter2"]}, "invalid secret"),
        (
            {"name": "n", "address": "203.0.113.5", "requireMessageAuthenticator": "x"},
            "invalid requireMessageAuthenticator",
        ),
        ({"name": "n", "address": "203.0.113.5", "limitProxyState": 3}, "invalid limitProxyState"),
        ({"name": "n", "address": "203.0.113.5", "passwordVerified": "perhaps"}, "invalid passwordVerified"),
        ({"name": "n", "address": "203.0.113.5", "tlsName": "a\tb"}, "invalid tlsName"),
        ({"name": "n", "address": "203.0.113.5", "tlsFingerprint": "12:34"}, "invalid tlsFingerprint"),
    ],
)  # fmt: skip
def test_malformed_clients_are_refused(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed client is refused and not added. The error names the field and does not repeat the secret."""
    assert tenant.refused(ADD, **fields) == (400, text)
    assert listed(tenant) == []


def test_an_update_holds_for_the_next_packet(world: World, tenant: Tenant) -> None:
    """An update applies to the next packet.

    An absent field and an empty secret keep the stored value, and an empty product clears it. The answer has no secret.
    """
    old, new = world.address(), world.address()
    client = tenant.ask(ADD, name="n", address=old, secret=SECRET, domainId=tenant.domain, product="Cisco ISE")[
        "clientId"
    ]
    answer = tenant.ask(UPDATE, clientId=str(client), name="m", secret="")
    now = {"warnings": [], "signatureRequired": False, "proxyStateLimited": False}
    assert answer == {"code": 200, "status": "Success", "message": "client updated", **now}
    (before,) = listed(tenant)
    assert (before["name"], before["product"], before["domainIds"]) == ("m", "Cisco ISE", [tenant.domain])
    assert logs_in(tenant, old)
    tenant.ask(UPDATE, clientId=client, address=new, secret="another secret of theirs", product="", domainIds=[])
    (after,) = listed(tenant)
    assert (after["address"], after["product"], after["domainIds"]) == (new, "", [])
    assert [logs_in(tenant, old), logs_in(tenant, new), logs_in(tenant, new, "another secret of theirs")] == [
        False, False, True,
    ]  # fmt: skip
    tenant.ask(UPDATE, clientId=client, requireMessageAuthenticator=True)
    assert not logs_in(tenant, new, "another secret of theirs", signed=False)


def test_a_latch_is_shown_and_kept(world: World, tenant: Tenant) -> None:
    """After a signed login of a client with a single address, the list shows the latch.

    A changed address keeps the latch, and the answer says this.
    """
    address = world.address()
    client = tenant.ask(ADD, name="n", address=address, secret=SECRET, domainId=tenant.domain)["clientId"]
    assert logs_in(tenant, address, signed=False)
    assert logs_in(tenant, address)
    assert not logs_in(tenant, address, signed=False)
    (shown,) = listed(tenant)
    assert (shown["signatureRequired"], shown["proxyStateLimited"]) == (True, True)
    assert shown["requireMessageAuthenticator"] == "auto"
    address = world.address()
    updated = tenant.ask(UPDATE, clientId=client, address=address)
    (moved,) = listed(tenant)
    for each in (updated, moved):
        assert (each["signatureRequired"], each["proxyStateLimited"]) == (True, True)
    assert not logs_in(tenant, address, signed=False)


def test_a_client_is_unlatched(world: World, tenant: Tenant) -> None:
    """`unlatch` resets what a client has learned, and the client learns again with its next signed login."""
    address = world.address()
    client = tenant.ask(ADD, name="n", address=address, secret=SECRET, domainId=tenant.domain)["clientId"]
    assert logs_in(tenant, address)
    assert not logs_in(tenant, address, signed=False)
    updated = tenant.ask(UPDATE, clientId=client, unlatch=True)
    assert (updated["signatureRequired"], updated["proxyStateLimited"]) == (False, False)
    assert logs_in(tenant, address, signed=False)
    assert logs_in(tenant, address)
    assert not logs_in(tenant, address, signed=False)


def test_a_deleted_client_is_not_answered(world: World, tenant: Tenant) -> None:
    """The next packet of a deleted client is not answered.

    Its devices stay in the inventory, and a second deletion is answered with 404.
    """
    address = tenant.device("switch")
    (client,) = listed(tenant)
    answer = tenant.ask(DELETE, clientId=client["clientId"])
    assert answer == {"code": 200, "status": "Success", "message": "client deleted"}
    assert not logs_in(tenant, address)
    assert tenant.names() == ["switch"]
    assert tenant.refused(DELETE, clientId=client["clientId"]) == NOT_FOUND


@pytest.mark.parametrize("path", [UPDATE, DELETE])
def test_another_tenants_client(world: World, tenant: Tenant, path: str) -> None:
    """A client of another tenant is answered with 404 and stays unchanged."""
    other = world.tenant()
    theirs = other.ask(ADD, name="theirs", address=world.address())["clientId"]
    for client in (theirs, 10**9, 0, -1):
        assert tenant.refused(path, clientId=client) == NOT_FOUND
    assert tenant.refused(path) == (400, "missing clientId")
    for client in ("x", True, 2**63, [theirs]):
        assert tenant.refused(path, clientId=client) == (400, "invalid clientId")
    assert [each["name"] for each in listed(other)] == ["theirs"]


def test_secrets_are_shown_once(world: World, tenant: Tenant) -> None:
    """A client's secret and a user's password are in no other answer, refusal, metric, log line or file."""
    secret, address = "hunter2 is the secret of this client", world.address()
    client = tenant.ask(ADD, name="n", address=address, secret=secret, domainId=tenant.domain)["clientId"]
    assert logs_in(tenant, address, secret)
    assert not logs_in(tenant, address, secret, user="nobody")
    domain = {"domainId": tenant.domain}
    shown = [
        str(tenant.ask(LIST)),
        str(tenant.ask("/network_device/ListDevices", **domain)),
        str(tenant.ask("/network_device/ListStations", **domain)),
        str(tenant.ask("/network_device/DeviceHistory", **domain)),
        str(tenant.ask("/ad/GetAllDomains", **domain)),
        str(tenant.ask("/ad/GetAuthLog", **domain)),
        str(tenant.ask(UPDATE, clientId=client, secret=secret)),
        str(tenant.refused(ADD, name="n", address=world.address(), secret=secret)),
        str(tenant.refused(UPDATE, clientId="x", secret=secret)),
        str(world.service.clients()),
        world.http.get("/metrics").text,
        world.service.log(),
    ]
    for text in shown:
        assert "hunter2" not in text
        assert PASSWORD not in text
        assert tenant.token not in text
    kept = world.service.database()
    assert b"endpoint_users" in kept
    assert b"hunter2" not in kept and PASSWORD.encode() not in kept and tenant.token.encode() not in kept


def test_an_operator_changes_everything_but_trust(world: World, tenant: Tenant) -> None:
    """An operator may change and remove clients. If an operator changes a secret or another field that decides about
    trust, the answer is 403.
    """
    operator, address = tenant.role("operator"), world.address()
    client = tenant.ask(ADD, name="n", address=address, secret=SECRET, domainId=tenant.domain)["clientId"]
    for change in (
        {"secret": "another secret"}, {"tlsName": "a.example.org"}, {"tlsFingerprint": "ab" * 32}, {"domainIds": []},
        {"passwordVerified": True}, {"requireMessageAuthenticator": "no"}, {"limitProxyState": "no"}, {"unlatch": True},
        {"macForms": ["login-user"]}, {"macForms": ["password"], "macPassword": "a word"},
    ):  # fmt: skip
        refused = tenant.refused(UPDATE, token=operator, clientId=client, name="m", **change)
        assert refused == (403, "role not allowed"), change
    (shown,) = listed(tenant)
    assert shown["name"] == "n"
    same = {name: shown[name] for name in ("tlsName", "domainIds", "passwordVerified", "limitProxyState")}
    tenant.ask(UPDATE, token=operator, clientId=client, name="m", secret="", **same)
    assert logs_in(tenant, address)
    tenant.ask(DELETE, token=operator, clientId=client)
    assert listed(tenant) == []

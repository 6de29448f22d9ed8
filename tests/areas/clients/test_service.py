"""Tests of adding, changing, searching and deleting RADIUS clients."""

import threading
from ipaddress import ip_network
from typing import Any

import pytest
import trio

from sallyport.areas.clients import repo, service
from sallyport.areas.clients.client import SIGNED, State
from sallyport.areas.clients.repo import Change, update_all
from sallyport.areas.clients.service import NewClient
from sallyport.areas.devices.rows import Heard
from sallyport.base.errors import Conflict, Forbidden, NotFound, SecretError
from sallyport.store.model import Tx
from sallyport.store.vault import MasterKeys, Vault
from sallyport.web.scope import Role
from tests.areas import ENGINE, SECRET, Areas, only_sqlite, stored
from tests.plans import plans, statements


async def test_a_client_is_found_at_once(areas: Areas) -> None:
    """As soon as `add` returns, the client is found by its address.

    It has its secret, its domains and the default settings.
    """
    client_id, secret = await areas.clients.add(areas.tenant, NewClient("nps", "192.0.2.1/32", SECRET))
    client = areas.clients.table.find("192.0.2.1")
    assert client is areas.clients.table.by_id[client_id]
    assert (secret, client.secret.octets, client.name, client.tenant_id) == (SECRET, SECRET, "nps", areas.tenant)
    assert (client.all_domains, client.domain_ids, client.product, client.password_verified) == (True, (), "", False)
    assert (client.require_message_authenticator, client.limit_proxy_state) == ("auto", "auto")
    assert (client.signature_required, client.proxy_state_limited) == (False, False)


async def test_a_missing_secret_is_generated(areas: Areas) -> None:
    """A generated secret has 32 random letters and digits."""
    made = [await areas.clients.add(areas.tenant, NewClient(f"c{n}", f"192.0.2.{n}/32")) for n in (1, 2)]
    secrets = {secret for _, secret in made}
    assert len(secrets) == 2
    assert all(len(secret) == 32 and secret.isalnum() and secret.isascii() for secret in secrets)
    assert areas.clients.table.by_id[made[0][0]].secret.octets == made[0][1]


async def test_the_store_contains_no_secret(areas: Areas) -> None:
    """Neither the database nor its log contains the octets of a secret.

    An encrypted secret cannot be decrypted in another row.
    """
    await areas.client("192.0.2.1/32")
    await areas.client("192.0.2.2/32")
    assert SECRET not in stored(areas.store)
    await areas.store.write(
        lambda tx: tx.execute("update radius_clients set secret = (select secret from radius_clients where id = 1)")
    )
    with pytest.raises(SecretError):
        await Areas(areas.store, areas.clock).configuration.reload()


class PausingVault(Vault):
    """A vault that pauses the thread that opens the secret of one client, until an event is set."""

    def pause(self, client_id: int, until: threading.Event) -> threading.Event:
        """Pause at a client from now on, and return the event that is set when a thread has reached it."""
        self._paused, self._until, self._reached = f"radius_clients/{client_id}/secret", until, threading.Event()
        return self._reached

    def open(self, sealed: bytes, identity: str) -> bytes:
        """Open the value, after the pause if it belongs to the client."""
        if identity == self._paused:
            until, self._paused = self._until, ""
            self._reached.set()
            assert until.wait(60)
        return super().open(sealed, identity)


async def test_overlapping_loads_mix_up_no_secrets(areas: Areas) -> None:
    """Two loads run at the same time: the first pauses at client 3, the second at client 1 until the first has ended.
    In both results, each client has its own secret."""
    wanted = dict([await areas.clients.add(areas.tenant, NewClient(f"c{n}", f"192.0.2.{n}/32")) for n in range(1, 5)])
    before = areas.clients.table
    vault, loaded = PausingVault(MasterKeys(areas.vault.keys)), list[dict[int, bytes]]()
    first_has_ended = threading.Event()

    async def load() -> None:
        try:
            table = await areas.store.read(lambda tx: repo.load(tx, vault, before))
        finally:
            first_has_ended.set()
        loaded.append({client.id: client.secret.octets for client in table.by_id.values()})

    async def change(client_id: int) -> None:
        wanted[client_id] = b"new secret %d" % client_id
        await areas.store.write(
            lambda tx: repo.update_all(tx, vault, areas.tenant, [Change(client_id, {}, wanted[client_id])])
        )

    async with trio.open_nursery() as nursery:
        await change(3)
        second_has_begun = threading.Event()
        first_is_paused = vault.pause(3, second_has_begun)
        nursery.start_soon(load)
        await trio.to_thread.run_sync(first_is_paused.wait)
        expected = [dict(wanted)]
        await change(1)
        second_is_paused = vault.pause(1, first_has_ended)
        nursery.start_soon(load)
        await trio.to_thread.run_sync(second_is_paused.wait)
        second_has_begun.set()
    assert loaded == [*expected, wanted]


async def test_names_and_addresses_are_unique(areas: Areas) -> None:
    """A name is unique in its tenant, regardless of case. An address is unique in the installation."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.client("192.0.2.1/32", name="NPS")
    for new in (NewClient("nps", "192.0.2.2/32"), NewClient("other", "192.0.2.1/32")):
        with pytest.raises(Conflict):
            await areas.clients.add(areas.tenant, new)
    with pytest.raises(Conflict):
        await areas.clients.add(other, NewClient("nps", "192.0.2.1/32"))
    await areas.clients.add(other, NewClient("nps", "192.0.2.2/32"))
    assert len(areas.clients.table.by_id) == 2


@pytest.mark.parametrize("network", ["10.1.2.3/32", "10.0.0.0/8", "0.0.0.0/0"], ids=["inside", "around", "all"])
async def test_overlapping_ranges_of_tenants_are_refused(areas: Areas, network: str) -> None:
    """A range that contains, or lies within, a range of another tenant is refused. The message contains no address."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.client("10.1.0.0/16", tenant=other)
    mine = await areas.client("192.0.2.1/32")
    with pytest.raises(Conflict, match=r"^address is not available: choose another one, or ask [^0-9]*$"):
        await areas.clients.add(areas.tenant, NewClient("n", network))
    with pytest.raises(Conflict, match="address is not available"):
        await areas.clients.update(areas.tenant, mine.id, {"network": network})
    await areas.client("10.1.2.3/32", tenant=other)
    assert areas.clients.table.by_id[mine.id].address == "192.0.2.1"


@pytest.mark.parametrize("network", ["2001:db8:1::/64", "2001:db8:1::7/128", "2001:db8::/32"])
@pytest.mark.parametrize("by_index", [True, False], ids=["indexed", "of an earlier release"])
async def test_overlaps_are_found_by_the_index(areas: Areas, network: str, by_index: bool) -> None:
    """An overlapping network of another tenant is found by the index, or by a scan if a node of an earlier release has
    written it. Networks beside it are free."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.client("2001:db8:1::/64", tenant=other)
    if not by_index:
        await areas.store.write(lambda tx: tx.execute("update radius_clients set network_bits = null"))
    with pytest.raises(Conflict):
        await areas.clients.add(areas.tenant, NewClient("n", network))
    for free in ("2001:db8:1:1::/64", "2001:db8:0:ffff::/64", "32.1.13.184"):
        await areas.clients.add(areas.tenant, NewClient(free, free))


@pytest.mark.skipif(ENGINE != "postgres", reason="SQLite has no nodes of an earlier release")
async def test_a_network_of_an_earlier_release_leaves_the_index(areas: Areas) -> None:
    """If a node that does not know the index changes a network, the network is found at its new place."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    theirs = await areas.client("192.0.2.1/32", tenant=other)
    sql = "update radius_clients set network = '198.51.100.1/32' where id = :id"
    await areas.store.write(lambda tx: tx.execute(sql, id=theirs.id))
    with pytest.raises(Conflict):
        await areas.clients.add(areas.tenant, NewClient("n", "198.51.100.0/24"))
    await areas.clients.add(areas.tenant, NewClient("m", "192.0.2.0/24"))


@only_sqlite
async def test_a_change_reads_no_client_of_another_tenant(areas: Areas) -> None:
    """The check of an address and the change of clients find rows by an index of few rows."""
    ids = [(await areas.client(f"192.0.2.{n}/32")).id for n in (1, 2)]
    networks = [ip_network("10.0.0.0/24"), ip_network("2001:db8::1/128")]
    changes = [
        Change(each, {"network": f"10.0.0.{each}/32", "tls_name": f"{each}.example"}, None, [areas.domain])
        for each in ids
    ]

    def change(tx: Tx) -> None:
        repo.touch_others(tx, areas.tenant, networks)
        repo.described(tx, areas.tenant, ids[0])
        repo.update_all(tx, areas.vault, areas.tenant, changes)

    found = plans(areas.store.path, change)
    assert [plan for plan in found if "SCAN radius" in plan or "rowid>" in plan or "client_id>" in plan] == []
    assert any("radius_clients_bits (network_bits=?" in plan for plan in found)


async def test_an_address_is_stored_with_its_prefix_length(areas: Areas) -> None:
    """An address without a prefix length is the same as the address with /32."""
    client = await areas.client("192.0.2.9")
    assert areas.clients.find(("192.0.2.9", 1)) is client
    assert await areas.store.read(lambda tx: tx.value(str, "select network from radius_clients")) == "192.0.2.9/32"
    with pytest.raises(Conflict, match="address"):
        await areas.client("192.0.2.9/32")


WIDE = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/23", "::/0", "2001:db8::/63"]


@pytest.mark.parametrize("network", WIDE)
@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
async def test_a_wide_range_is_refused_if_there_are_several_tenants(areas: Areas, network: str, role: Role) -> None:
    """If there are several tenants, a tenant can neither add a range wider than /24 (IPv6: /64) nor change a client to
    such a range."""
    await areas.tenancy.ensure_tenant(2, 1)
    mine = await areas.client("192.0.2.1/32")
    with pytest.raises(Forbidden, match="several tenants"):
        await areas.clients.add(areas.tenant, NewClient("n", network), by=role)
    with pytest.raises(Forbidden, match="several tenants"):
        await areas.clients.update(areas.tenant, mine.id, {"network": network}, by=role)
    assert areas.clients.table.by_id[mine.id].address == "192.0.2.1"


@pytest.mark.parametrize("network", ["198.51.100.0/24", "2001:db8::/64", "2001:db8::7/128"])
async def test_a_tenant_may_add_a_24_or_an_ipv6_64(areas: Areas, network: str) -> None:
    """A tenant may add a /24 or an IPv6 /64 if there are several tenants."""
    await areas.tenancy.ensure_tenant(2, 1)
    await areas.clients.add(areas.tenant, NewClient("n", network), by=Role.ADMIN)


@pytest.mark.parametrize("network", WIDE)
async def test_the_installation_may_add_any_range(areas: Areas, network: str) -> None:
    """The command line may add any range, even if there are several tenants."""
    await areas.tenancy.ensure_tenant(2, 1)
    await areas.clients.add(areas.tenant, NewClient("n", network))


async def test_the_only_tenant_may_add_any_range(areas: Areas) -> None:
    """If the only tenant has a wide range and a second tenant is added, the range keeps working and its client can
    still be changed."""
    client_id, _ = await areas.clients.add(areas.tenant, NewClient("all", "10.0.0.0/8"), by=Role.ADMIN)
    await areas.tenancy.ensure_tenant(2, 1)
    same = {"network": "10.0.0.0/8", "product": "x"}
    await areas.clients.update(areas.tenant, client_id, same, by=Role.ADMIN)
    found = areas.clients.find(("10.200.0.1", 1))
    assert found is not None and (found.id, found.product) == (client_id, "x")


async def test_a_refused_wide_range_reveals_no_other_tenant(areas: Areas) -> None:
    """The message is the same whether or not another tenant has an address in the range."""
    await areas.client("10.1.2.3/32", tenant=await areas.tenancy.ensure_tenant(2, 1))
    messages = []
    for network in ("10.1.0.0/16", "10.2.0.0/16"):
        with pytest.raises(Forbidden) as refused:
            await areas.clients.add(areas.tenant, NewClient("n", network), by=Role.ADMIN)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


TRUSTED: list[tuple[str, dict[str, Any]]] = [
    ("tlsName", {"changes": {"tls_name": "proxy.example.org"}}),
    ("tlsName cleared", {"changes": {"tls_name": ""}}),
    ("tlsFingerprint", {"changes": {"tls_fingerprint": "12" * 32}}),
    ("passwordVerified", {"changes": {"password_verified": 0}}),
    ("requireMessageAuthenticator", {"changes": {"require_message_authenticator": "no"}}),
    ("limitProxyState", {"changes": {"limit_proxy_state": "no"}}),
    ("secret", {"changes": {}, "secret": b"another secret"}),
    ("domains", {"changes": {}, "domain_ids": []}),
]


@pytest.mark.parametrize("change", [each for _, each in TRUSTED], ids=[name for name, _ in TRUSTED])
async def test_only_an_admin_changes_trust(areas: Areas, change: dict[str, Any]) -> None:
    """An operator cannot change a field that decides which packets are trusted."""
    trusted = {"tls_name": "nas.example.org", "tls_fingerprint": "ab" * 32, "password_verified": True}
    client = await areas.client(domain_ids=(areas.domain,), require_message_authenticator="yes", **trusted)
    with pytest.raises(Forbidden, match="role not allowed"):
        await areas.clients.update(areas.tenant, client.id, **change, by=Role.OPERATOR)
    assert areas.clients.table.by_id[client.id] is client
    await areas.clients.update(areas.tenant, client.id, **change, by=Role.ADMIN)


async def test_an_operator_may_send_unchanged_trust_fields(areas: Areas) -> None:
    client = await areas.client(domain_ids=(areas.domain,), tls_name="nas.example.org", password_verified=True)
    same = {
        "tls_name": "nas.example.org", "tls_fingerprint": "", "password_verified": 1,
        "require_message_authenticator": "auto", "limit_proxy_state": "auto", "network": "198.51.100.9/32",
    }  # fmt: skip
    ids = [areas.domain, areas.domain]
    await areas.clients.update(areas.tenant, client.id, same, domain_ids=ids, by=Role.OPERATOR)
    assert areas.clients.table.by_id[client.id].address == "198.51.100.9"


async def test_concurrent_overlapping_ranges_of_two_tenants(areas: Areas) -> None:
    """If two tenants add overlapping ranges at the same time, one of them succeeds and the other gets a Conflict."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    refused = []

    async def add(tenant: int, network: str) -> None:
        try:
            await areas.clients.add(tenant, NewClient(network, network))
        except Conflict as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(add, areas.tenant, f"10.{number}.0.0/16")
            nursery.start_soon(add, other, f"10.{number}.2.3/32")
    assert (len(refused), len(areas.clients.table.by_id)) == (5, 5)


@pytest.mark.parametrize(
    ("third", "taken"),
    [
        (NewClient("A", "192.0.2.3/32"), "a RADIUS client already has this name"),
        (NewClient("c", "192.0.2.2/32"), "the RADIUS client b already has this address"),
        (NewClient("c", "192.0.2.3/32", tls_name="nas"), "the RADIUS client a already has this tlsName"),
    ],
    ids=["name", "address", "tlsName"],
)
async def test_one_refused_client_refuses_all(areas: Areas, third: NewClient, taken: str) -> None:
    """If a name, address or TLS name occurs twice in a request, the request adds no client."""
    first, second = NewClient("a", "192.0.2.1/32", tls_name="nas"), NewClient("b", "192.0.2.2/32")
    with pytest.raises(Conflict, match=taken):
        await areas.clients.add_all(areas.tenant, [first, second, third])
    assert not areas.clients.table.by_id


async def test_many_clients_are_added_at_once(areas: Areas) -> None:
    """Each client of one request gets its own secret and its own domains."""
    branch = await areas.domains.add(areas.tenant, "branch")
    added = await areas.clients.add_all(
        areas.tenant,
        [NewClient(f"c{n}", f"192.0.2.{n}/32", domain_ids=(branch, areas.domain)[: n % 3]) for n in range(100)],
    )
    clients = list(areas.clients.table.by_id.values())
    assert added == [(client.id, client.secret.octets) for client in clients]
    assert [client.domain_ids for client in clients[:3]] == [(), (branch,), (branch, areas.domain)]
    assert [client.all_domains for client in clients[:3]] == [True, False, False]


@only_sqlite
async def test_many_clients_are_changed_with_one_statement_each(areas: Areas) -> None:
    """All clients are read by one query, so that the transaction is short."""
    await areas.clients.add_all(areas.tenant, [NewClient(f"c{n}", f"10.0.0.{n}") for n in range(100)])
    own = areas.clients.of_tenant(areas.tenant)
    changes = [Change(client.id, {"product": "Cisco ISE"}, b"another", [areas.domain]) for client in own]
    assert len(statements(areas.store.path, lambda tx: update_all(tx, areas.vault, areas.tenant, changes))) < 110
    await areas.configuration.reload()
    for client in areas.clients.of_tenant(areas.tenant):
        assert (client.product, client.secret.octets, client.domain_ids) == ("Cisco ISE", b"another", (areas.domain,))


async def test_domains_of_a_client(areas: Areas) -> None:
    """Domains are stored in the given order without duplicates.

    An empty list selects all domains. A domain of another tenant raises Forbidden, and nothing changes.
    """
    branch = await areas.domains.add(areas.tenant, "branch")
    foreign = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "theirs")
    client = await areas.client(domain_ids=(branch, areas.domain, branch))
    assert client.domain_ids == (branch, areas.domain)
    assert not client.all_domains
    for domain_ids in ((foreign,), (branch, 99)):
        with pytest.raises(Forbidden, match=r"^domain not in tenant$"):
            await areas.clients.update(areas.tenant, client.id, {}, domain_ids=domain_ids)
        with pytest.raises(Forbidden, match=r"^domain not in tenant$"):
            await areas.clients.add(areas.tenant, NewClient("n", "192.0.2.9/32", domain_ids=domain_ids))
    await areas.clients.update(areas.tenant, client.id, {}, domain_ids=())
    changed = areas.clients.table.by_id[client.id]
    assert (changed.domain_ids, changed.all_domains) == ((), True)


async def test_an_update_keeps_other_fields(areas: Areas) -> None:
    """Each field can be changed separately. A new secret is in force at once."""
    client = await areas.client("192.0.2.1/32", name="nps", product="Cisco ISE", domain_ids=(areas.domain,))
    await areas.clients.update(areas.tenant, client.id, {"name": "ise"})
    await areas.clients.update(areas.tenant, client.id, {}, secret=b"another secret")
    changed = areas.clients.table.by_id[client.id]
    assert (changed.name, changed.address, changed.product) == ("ise", "192.0.2.1", "Cisco ISE")
    assert (changed.domain_ids, changed.secret.octets) == ((areas.domain,), b"another secret")
    await areas.clients.update(areas.tenant, client.id, {"network": "198.51.100.0/24", "product": ""})
    changed = areas.clients.table.by_id[client.id]
    assert (changed.address, changed.product) == ("198.51.100.0/24", "")
    assert areas.clients.table.find("192.0.2.1") is None


async def test_a_client_of_another_tenant_is_not_found(areas: Areas) -> None:
    """A change or deletion of another tenant's client fails with the message for an unknown ID."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    client = await areas.client(tenant=other)
    for client_id in (client.id, 99, 0, -1):
        with pytest.raises(NotFound, match=r"^client not found$"):
            await areas.clients.update(areas.tenant, client_id, {"name": "n"})
        with pytest.raises(NotFound, match=r"^client not found$"):
            await areas.clients.delete(areas.tenant, client_id)
    assert list(areas.clients.of_tenant(areas.tenant)) == []
    assert areas.clients.of_tenant(other) == [areas.clients.table.by_id[client.id]]


async def test_a_deleted_client_is_unknown_at_once(areas: Areas) -> None:
    """The address of a deleted client belongs to the surrounding range, or to no client if there is no such range.

    Name and address can be used again.
    """
    wide = await areas.client("192.0.2.0/24")
    client = await areas.client("192.0.2.1/32", domain_ids=(areas.domain,))
    await areas.clients.delete(areas.tenant, client.id)
    found = areas.clients.table.find("192.0.2.1")
    assert found is not None and found.id == wide.id
    again = await areas.client("192.0.2.1/32")
    assert again.id > client.id
    assert again.domain_ids == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ["NPS-1", "Zürich"]), ("microsoft", ["NPS-1"]), ("51.100", ["Zürich"]), ("ZÜ", ["Zürich"])],
    ids=["all", "product", "address", "name"],
)
async def test_a_search_finds_clients(areas: Areas, text: str, names: list[str]) -> None:
    """A case-insensitive search compares name, address and product."""
    await areas.client("192.0.2.1/32", name="NPS-1", product="Microsoft NPS")
    await areas.client("198.51.100.0/24", name="Zürich")
    assert [client.name for client in await areas.clients.search(areas.tenant, text)] == names


async def test_a_reload_keeps_the_clients_that_have_not_changed(areas: Areas) -> None:
    """A change of one client makes only this client anew. A client with a learned setting is made anew too, so that
    the setting can be reset."""
    same, changed, latched = [await areas.client(f"192.0.2.{number}/32") for number in (1, 2, 3)]
    areas.clients.latches.latch(latched, SIGNED)
    await areas.clients.update(areas.tenant, changed.id, {"name": "new"})
    by_id = areas.clients.table.by_id
    assert by_id[same.id] is same
    assert by_id[changed.id] is not changed and by_id[changed.id].name == "new"
    assert by_id[latched.id] is not latched and by_id[latched.id].signature_required
    await areas.clients.latches.unlatch(by_id[latched.id])
    assert not areas.clients.table.by_id[latched.id].signature_required
    await areas.clients.update(areas.tenant, same.id, {}, domain_ids=[areas.domain])
    assert areas.clients.table.by_id[same.id].domain_ids == (areas.domain,)


async def test_a_search_folds_no_names(areas: Areas) -> None:
    """A search compares the folded names of the store, because to fold the names of 50,000 clients takes seconds."""
    client = await areas.client(name="Zürich")
    await areas.store.write(lambda tx: tx.execute("update radius_clients set name_key = 'folded when written'"))
    await areas.configuration.reload()
    assert [each.id for each in await areas.clients.search(areas.tenant, "when written")] == [client.id]


async def test_the_activity_has_the_state_of_each_client(areas: Areas) -> None:
    """A client is silent a day after its last request, and unsigned for a day after its last unsigned request."""
    now, day = areas.clock(), 86_400_000_000
    clients = [await areas.client(f"192.0.2.{number}/32") for number in range(1, 5)]
    silent, unsigned, signed, _never = clients
    heard = [
        Heard("192.0.2.1", now - day - 1, now - day - 1),
        Heard("192.0.2.2", now, now - day),
        Heard("192.0.2.3", now, None),
        Heard("198.51.100.1", now, now),
    ]

    async def listed(**selection: Any) -> list[int]:
        return [client.id for client, _ in await areas.clients.activity(areas.tenant, heard, **selection)]

    assert await listed() == [each.id for each in clients]
    assert await listed(state=State.SILENT) == [silent.id]
    assert await listed(state=State.UNSIGNED) == [unsigned.id]
    assert await listed(ids=[signed.id, 10**9]) == [signed.id]


async def test_the_characters_of_tags_and_notes_are_limited(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a tenant could fill the memory. Shorter ones can always be set, and other tenants have their own
    limit."""
    monkeypatch.setattr(service, "MAX_CHARACTERS", 20)
    client = await areas.client(tags=("site=Berlin",), note="cellar")
    with pytest.raises(Conflict, match="at most 20 characters"):
        await areas.client("192.0.2.2/32", note="attic")
    for change in ({"tags": ["role=core"]}, {"tags": ["site=Frankfurt am Main"]}):
        with pytest.raises(Conflict):
            await areas.clients.update(areas.tenant, client.id, {}, **change)
    with pytest.raises(Conflict):
        await areas.clients.update(areas.tenant, client.id, {"note": "in the cellar"})
    await areas.clients.update(areas.tenant, client.id, {"note": "attic"}, tags=["site=Bonn"])
    assert areas.clients.table.by_id[client.id].tags == ("site=Bonn",)
    other = await areas.tenancy.ensure_tenant(2, 2)
    await areas.client("192.0.2.3/32", tenant=other, note="attic and cellar")
    with pytest.raises(NotFound):
        await areas.clients.update(other, client.id, {"note": "a note that would be too long"})

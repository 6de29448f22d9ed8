"""What each area's changes leave in the trail: one entry, in the transaction of the change, or none."""

from pathlib import Path

import pytest

from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import iso
from sallyport.base.errors import Conflict, NotFound, StoreError
from sallyport.domains.domain import Fallback, Mode
from sallyport.domains.enforcement import Reverts
from sallyport.inventory.clients.client import LIMITED, SIGNED
from sallyport.inventory.clients.plan import Wanted
from sallyport.inventory.clients.repo import described
from sallyport.inventory.clients.service import NewClient
from sallyport.inventory.devices.sightings import write_first_sighting
from sallyport.policy.rules.bodies import RuleFields
from sallyport.store import audit
from sallyport.store.audit import HIDDEN, INSTALLATION, changed
from sallyport.store.copies import SqliteCopies
from sallyport.store.model import Tx, Value
from sallyport.web.scope import Role
from tests.areas import SECRET, Areas
from tests.audit import Since, trail
from tests.packets import access_request, attributes, opened


def domain(areas: Areas) -> str:
    """The domain as it is called in the trail."""
    return f"domain {areas.domain} corp"


async def test_a_first_start_is_the_services(areas: Areas) -> None:
    """The organization, the tenant and its domain are there, made by the service itself."""
    rows = await trail(areas)
    assert [row.action for row in rows] == ["organization.add", "tenant.add", "domain.add"]
    assert {(row.actor_kind, row.actor, row.token_id) for row in rows} == {("service", "", None)}
    assert {row.tenant_id for row in rows} == {areas.tenant}
    assert rows[2].domain_id == areas.domain


async def test_who_acts_is_kept(areas: Areas, since: Since) -> None:
    """An entry has kind, name and token of the actor of the change, also in the store's thread."""
    with acting_as(Actor("token", "ci", 7)):
        await areas.domains.add(areas.tenant, "branch")
    await areas.domains.add(areas.tenant, "other")
    assert [(row.actor_kind, row.actor, row.token_id) for row in await since.rows()] == [
        ("token", "ci", 7),
        ("service", "", None),
    ]


async def test_tenants_are_told_once(areas: Areas, since: Since) -> None:
    """A known tenant leaves no entry; a new tenant in a known organization leaves one."""
    other = await areas.tenancy.ensure_tenant(1, 2)
    await areas.tenancy.ensure_tenant(1, 2)
    (row,) = await since.rows()
    assert (row.action, row.tenant_id, row.target) == ("tenant.add", other, "tenant 2 of organization 1")


async def test_tokens(areas: Areas, since: Since) -> None:
    """Made and revoked, by id and name; revoking it again changes nothing."""
    until = areas.clock() + 1
    record, _ = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", until)
    for _ in range(2):
        await areas.tenancy.revoke(record.id)
    changes = {"role": [None, "operator"], "expires": [None, iso(until)]}
    assert await since.told() == [
        ("token.create", f"token {record.id} ci", changes),
        ("token.revoke", f"token {record.id} ci", {}),
    ]


async def test_a_mode_is_told_before_and_after(areas: Areas, since: Since) -> None:
    """Only what differs; a mode that is set to what it is leaves nothing."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    changes = {"enforcementMode": ["monitor", "enforce"], "fallbackAction": ["deny", "allow"]}
    assert await since.told() == [("domain.mode", domain(areas), changes)]


async def test_a_mode_that_goes_back_by_itself(areas: Areas, since: Since) -> None:
    """The service is the actor of the reversion, not the token that set it."""
    with acting_as(Actor("token", "ci", 7)):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=1)
    reverts_at = iso(areas.clock() + 60_000_000)
    areas.clock.pass_by(60)
    await Reverts(areas.domains, areas.clock).revert_due()
    rows = await since.rows()
    assert [(row.action, row.actor) for row in rows] == [("domain.mode", "ci"), ("domain.revert", "")]
    assert f'"revertsAt": ["{reverts_at}", null]' in rows[1].changes
    assert '"enforcementMode": ["enforce", "monitor"]' in rows[1].changes


async def test_a_confirmed_mode_is_told(areas: Areas, since: Since) -> None:
    """Keeping it changes when it ends, and nothing else."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=1)
    await since.rows()
    await areas.domains.set_mode([areas.domain], None)
    ((action, _, changes),) = await since.told()
    assert (action, list(changes)) == ("domain.mode", ["revertsAt"])


async def test_the_break_glass_is_told_where_it_changes_something(areas: Areas, since: Since) -> None:
    """A domain that monitors anyway has no entry, neither for breaking the glass nor for restoring."""
    await areas.domains.add(areas.tenant, "calm")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await since.rows()
    for _ in range(2):
        await areas.domains.break_glass()
    for _ in range(2):
        await areas.domains.restore()
    broken = {"enforcementMode": ["enforce", "monitor"], "restoreMode": [None, "enforce"]}
    assert await since.told() == [
        ("domain.break_glass", domain(areas), broken),
        ("domain.restore", domain(areas), {name: pair[::-1] for name, pair in broken.items()}),
    ]


async def test_setting_a_mode_behind_the_glass_is_told(areas: Areas, since: Since) -> None:
    """The mode stays what it is, but it is not restored any more."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await areas.domains.break_glass()
    await since.rows()
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert await since.told() == [("domain.mode", domain(areas), {"restoreMode": ["enforce", None]})]


async def test_a_client_over_its_life(areas: Areas, since: Since) -> None:
    """Added, changed and removed, with every field but the secret, which is named where it is set."""
    client = await areas.client("192.0.2.1/32", name="nps", product="Microsoft NPS")
    await areas.clients.update(areas.tenant, client.id, {"name": "nps-1"}, secret=b"another", domain_ids=[areas.domain])
    await areas.clients.update(areas.tenant, client.id, {"name": "nps-1"})
    await areas.clients.delete(areas.tenant, client.id)
    added, updated, deleted = await since.told()
    assert added[:2] == ("client.add", f"client {client.id} nps")
    assert added[2] | {
        "address": [None, "192.0.2.1/32"], "product": [None, "Microsoft NPS"], "secret": [None, HIDDEN],
    } == added[2]  # fmt: skip
    changes = {"name": ["nps", "nps-1"], "domainIds": [[], [areas.domain]], "secret": [HIDDEN, HIDDEN]}
    assert updated == ("client.update", f"client {client.id} nps", changes)
    assert deleted[:2] == ("client.delete", f"client {client.id} nps-1")
    assert deleted[2]["address"] == ["192.0.2.1/32", None]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"network": "192.0.2.2/32"},
        {"require_message_authenticator": "no"},
        {"limit_proxy_state": "yes"},
        {"password_verified": 1, "product": "Cisco ISE", "coa_port": 0},
        {"tls_name": "nps.example.com", "tls_fingerprint": "0" * 64},
    ],
)
async def test_what_is_told_of_a_client_is_what_the_store_has(
    areas: Areas, since: Since, changes: dict[str, Value]
) -> None:
    """Before and after the change, what the client had learned included."""
    client = await areas.client("192.0.2.1/32", name="nps")
    for what in (SIGNED, LIMITED):
        areas.clients.latch(client, what)
    await areas.clients.keep_learned()
    before = await areas.store.read(lambda tx: described(tx, areas.tenant, client.id))
    await since.rows()
    await areas.clients.update(areas.tenant, client.id, changes, domain_ids=[areas.domain, areas.domain])
    after = await areas.store.read(lambda tx: described(tx, areas.tenant, client.id))
    assert await since.told() == [("client.update", f"client {client.id} nps", changed(before, after))]


async def test_an_import_is_told_client_by_client(areas: Areas, since: Since) -> None:
    """A new client is added, a different one is changed, an equal one leaves no entry."""
    same, other = [await areas.client(f"192.0.2.{number}/32", name=f"c{number}") for number in (1, 2)]
    await since.rows()
    wanted = [
        Wanted(same.name, str(same.network), SECRET, None, "auto", "auto", None),
        Wanted(other.name, str(other.network), SECRET, "Cisco ISE", "auto", "auto", None),
        Wanted("new", "192.0.2.3/32", SECRET, None, "auto", "auto", None),
    ]
    await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted))
    updated, added = await since.told()
    assert updated == ("client.update", f"client {other.id} c2", {"product": ["", "Cisco ISE"]})
    assert added[0] == "client.add"


async def test_what_a_client_learns(areas: Areas, since: Since) -> None:
    """Latching is an entry of the service, once; unlatching is one of an admin."""
    client = await areas.client("192.0.2.1/32", name="nps")
    await since.rows()
    for what in (SIGNED, LIMITED):
        areas.clients.latch(client, what)
    await areas.clients.keep_learned()
    await areas.clients.keep_learned()
    await areas.clients.unlatch(client)
    target = f"client {client.id} nps"
    assert await since.told() == [
        ("client.latch", target, {"signatureLearned": [False, True]}),
        ("client.latch", target, {"proxyStateLimitLearned": [False, True]}),
        ("client.unlatch", target, {"signatureLearned": [True, False], "proxyStateLimitLearned": [True, False]}),
    ]


async def test_a_client_that_is_gone_learns_nothing(areas: Areas, since: Since) -> None:
    """What it showed before it was removed is dropped, without an entry."""
    client = await areas.client("192.0.2.1/32")
    areas.clients.latch(client, SIGNED)
    await areas.clients.delete(areas.tenant, client.id)
    await since.rows()
    await areas.clients.keep_learned()
    assert await since.rows() == []


async def test_a_provider_over_its_life(areas: Areas, since: Since) -> None:
    """Set, changed and removed, with its fields but the secrets, which are named; another kind's fields go."""
    radius = {"host": "192.0.2.7", "secret": "hunter2"}
    await areas.providers.set(areas.domain, "radius", radius, 60)
    await areas.providers.set(areas.domain, "radius", {**radius, "port": 1645}, 45)
    await areas.providers.set(areas.domain, "totp", {}, 45)
    await areas.providers.delete(areas.domain)
    told = await since.told()
    assert [(action, target) for action, target, _ in told] == [
        ("provider.set", f"MFA provider radius of domain {areas.domain}"),
        ("provider.set", f"MFA provider radius of domain {areas.domain}"),
        ("provider.set", f"MFA provider totp of domain {areas.domain}"),
        ("provider.delete", f"MFA provider totp of domain {areas.domain}"),
    ]
    assert [changes for *_, changes in told] == [
        {
            "provider": [None, "radius"], "timeoutSeconds": [None, 60], "host": [None, "192.0.2.7"],
            "port": [None, 1812], "secret": [None, HIDDEN],
        },
        {"timeoutSeconds": [60, 45], "port": [1812, 1645], "secret": [HIDDEN, HIDDEN]},
        {"provider": ["radius", "totp"], "host": ["192.0.2.7", None], "port": [1645, None], "secret": [HIDDEN, None]},
        {"provider": ["totp", None], "timeoutSeconds": [45, None]},
    ]  # fmt: skip


async def test_a_provider_that_cannot_be_read_can_be_replaced(areas: Areas, since: Since) -> None:
    """The entry has the fields that are not sealed; the change succeeds."""
    await areas.providers.set(areas.domain, "webhook", {"url": "https://h.example/x", "secret": "hunter2"}, 60)
    await since.rows()
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set fields = x'00'"))
    await areas.configuration.reload()
    await areas.providers.set(areas.domain, "totp", {}, 60)
    ((*_, changes),) = await since.told()
    assert changes == {"provider": ["webhook", "totp"]}


async def test_a_rule_over_its_life(areas: Areas, since: Since) -> None:
    """Added, changed and deleted, with what it says; a change that is none leaves nothing."""
    rule_id = await areas.rules.add(areas.domain, RuleFields(name="vip", action="allow", users=["ann"]))
    await areas.rules.update(areas.domain, rule_id, RuleFields(users=["ann", "bob"]))
    await areas.rules.update(areas.domain, rule_id, RuleFields(users=["ann", "bob"]))
    await areas.rules.delete(areas.domain, [rule_id, rule_id])
    added, updated, deleted = await since.told()
    assert added[:2] == ("rule.add", f"rule {rule_id} vip")
    assert added[2] | {"action": [None, "allow"], "users": [None, ["ann"]]} == added[2]
    assert updated == ("rule.update", f"rule {rule_id} vip", {"users": [["ann"], ["ann", "bob"]]})
    assert (deleted[0], deleted[2]["users"]) == ("rule.delete", [["ann", "bob"], None])


async def test_deleted_devices(areas: Areas, since: Since) -> None:
    """Each has its entry in the domain's trail."""
    client = await areas.client("192.0.2.1/32")
    request = opened(access_request(attributes(NAS_IDENTIFIER=b"fw-1")))
    device = areas.devices.sightings.device(request, "192.0.2.1", client, areas.domain, areas.clock())
    await areas.store.write(lambda tx: write_first_sighting(tx, device, None))
    await since.rows()
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ci")
    (row,) = await since.rows()
    assert (row.action, row.target, row.domain_id) == ("device.delete", f"device {device.id} fw-1", areas.domain)
    assert '"ip_address": ["192.0.2.1", null]' in row.changes


def copies(areas: Areas) -> SqliteCopies:
    """Copies of the areas' store."""
    return SqliteCopies(
        areas.store,
        check=lambda _tx: None,
        replaced=areas.configuration.restored,
        backed_up=lambda _at: None,
        clock=areas.clock,
    )


async def test_a_backup_is_the_installations(areas: Areas, since: Since, tmp_path: Path) -> None:
    """A complete backup is one entry of the installation; a failed backup leaves none."""
    with pytest.raises(StoreError):
        await copies(areas).backup(tmp_path / "none" / "b.db")
    await copies(areas).backup(tmp_path / "b.db")
    (row,) = await since.rows()
    assert (row.action, row.tenant_id, row.target) == ("store.backup", INSTALLATION, f"backup {tmp_path / 'b.db'}")


async def test_a_restore_is_told_in_the_restored_store(areas: Areas, tmp_path: Path) -> None:
    """To each tenant that is in it, with who did it; what came after the backup is gone, one that failed leaves
    nothing."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    await copies(areas).backup(tmp_path / "b.db")
    await areas.domains.add(areas.tenant, "later")
    before = len(await trail(areas))
    (tmp_path / "none.db").write_bytes(b"no database")
    with pytest.raises(StoreError):
        await copies(areas).restore(tmp_path / "none.db")
    assert len(await trail(areas)) == before
    with acting_as(Actor("command line", "root")):
        await copies(areas).restore(tmp_path / "b.db")
    rows = await trail(areas)
    assert not [row for row in rows if "later" in row.target]
    restored = [(row.tenant_id, row.actor) for row in rows if row.action == "store.restore"]
    assert restored == [(INSTALLATION, "root"), (areas.tenant, "root"), (other, "root")]
    assert str(tmp_path) not in [row.target for row in rows if row.tenant_id == areas.tenant][-1]


async def test_what_is_refused_leaves_nothing(areas: Areas, since: Since) -> None:
    """Whatever the reason, and however far the change had come."""
    await areas.client("192.0.2.1/32", name="nps")
    await since.rows()
    with pytest.raises(Conflict):
        await areas.domains.add(areas.tenant, "CORP")
    with pytest.raises(Conflict):
        await areas.clients.add_all(areas.tenant, [NewClient("new", "192.0.2.2/32"), NewClient("nps", "192.0.2.3/32")])
    with pytest.raises(NotFound):
        await areas.clients.update(areas.tenant + 1, 1, {"name": "x"})
    with pytest.raises(NotFound):
        await areas.providers.delete(areas.domain)
    rule_id = await areas.rules.add(areas.domain, RuleFields(name="r", action="block"))
    await since.rows()
    with pytest.raises(NotFound):
        await areas.rules.delete(areas.domain, [rule_id, rule_id + 1])
    with pytest.raises(NotFound):
        await areas.devices.delete(areas.domain, device_ids=[99], addresses=None, actor="")
    assert await since.rows() == []
    assert [rule.id for rule in areas.rules.all_of(areas.domain)] == [rule_id]


async def test_no_change_without_its_entry(areas: Areas, since: Since) -> None:
    """Where the entry cannot be written, the change is not made: they are one transaction."""
    await areas.store.write(
        lambda tx: tx.execute(
            "create trigger no_entry before insert on audit_trail begin select raise(abort, 'no entry'); end"
        )
    )
    with pytest.raises(StoreError, match="no entry"):
        await areas.client("192.0.2.1/32")
    with pytest.raises(StoreError, match="no entry"):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert areas.clients.table.by_id == {}
    assert areas.domains.table.by_id[areas.domain].mode is Mode.MONITOR
    assert await since.rows() == []


async def test_an_entry_is_never_altered(areas: Areas) -> None:
    """The store refuses it for every actor."""
    with pytest.raises(StoreError, match="append-only"):
        await areas.store.write(lambda tx: tx.execute("update audit_trail set actor = 'nobody'"))


async def test_of_a_long_value_the_beginning_is_kept(areas: Areas, since: Since) -> None:
    """Text, and lists as they are written in JSON; short values stay what they are."""

    def work(tx: Tx) -> None:
        long = {"text": [None, "x" * 5000], "list": [list(range(5000)), []], "short": [1, None]}
        audit.record(tx, "thing.set", at=1, tenant_id=areas.tenant, target="thing 1", changes=long)

    await areas.store.write(work)
    ((*_, changes),) = await since.told()
    assert changes["text"] == [None, "x" * audit.LONGEST + "..."]
    assert changes["short"] == [1, None]
    beginning, empty = changes["list"]  # type: ignore[misc]
    assert beginning.startswith("[0, 1, 2") and len(beginning) == audit.LONGEST + 3 and empty == []

"""The audit entry of each area's changes: it is written in the transaction of the change."""

from pathlib import Path

import pytest

from sallyport.areas.clients.client import LIMITED, SIGNED
from sallyport.areas.clients.plan import Wanted
from sallyport.areas.clients.repo import described
from sallyport.areas.clients.service import NewClient
from sallyport.areas.devices.sightings import write_first_sightings
from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.enforcement import Reverts
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import iso
from sallyport.base.errors import Conflict, NotFound, StoreError
from sallyport.store import audit
from sallyport.store.audit import HIDDEN, INSTALLATION, changed
from sallyport.store.copies import Copies
from sallyport.store.model import Tx, Value
from sallyport.web.scope import Role
from tests.areas import SECRET, Areas, refuse
from tests.areas.audit import NewEntries, trail
from tests.packets import access_request, attributes, opened


def domain(areas: Areas) -> str:
    """Return the name of the domain in the audit trail."""
    return f"domain {areas.domain} corp"


async def test_the_actor_of_a_first_start_is_the_service(areas: Areas) -> None:
    """The service's first start adds one entry each for the organization, the tenant and its domain. The actor is the
    service.
    """
    rows = await trail(areas)
    assert [row.action for row in rows] == ["organization.add", "tenant.add", "domain.add"]
    assert {(row.actor_kind, row.actor, row.token_id) for row in rows} == {("service", "", None)}
    assert {row.tenant_id for row in rows} == {areas.tenant}
    assert rows[2].domain_id == areas.domain


async def test_an_entry_has_its_actor(areas: Areas, new_entries: NewEntries) -> None:
    """An entry has the kind, name and token of its actor, even if it is written in the store's thread."""
    with acting_as(Actor("token", "ci", 7)):
        await areas.domains.add(areas.tenant, "branch")
    await areas.domains.add(areas.tenant, "other")
    assert [(row.actor_kind, row.actor, row.token_id) for row in await new_entries.rows()] == [
        ("token", "ci", 7),
        ("service", "", None),
    ]


async def test_a_tenant_is_recorded_once(areas: Areas, new_entries: NewEntries) -> None:
    """A new tenant of a known organization adds one entry. A known tenant adds none."""
    other = await areas.tenancy.ensure_tenant(1, 2)
    await areas.tenancy.ensure_tenant(1, 2)
    (row,) = await new_entries.rows()
    assert (row.action, row.tenant_id, row.target) == ("tenant.add", other, "tenant 2 of organization 1")


async def test_a_token_is_recorded_when_created_and_revoked(areas: Areas, new_entries: NewEntries) -> None:
    """A token has an entry when it is created and one when it is revoked. A second revocation adds no entry."""
    until = areas.clock() + 1
    record, _ = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", until)
    for _ in range(2):
        await areas.tenancy.revoke(record.id)
    changes = {"role": [None, "operator"], "expires": [None, iso(until)]}
    assert await new_entries.summaries() == [
        ("token.create", f"token {record.id} ci", changes),
        ("token.revoke", f"token {record.id} ci", {}),
    ]


async def test_a_changed_mode_is_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """The entry for a change of the mode has only the changed fields. Setting the same mode again adds no entry."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    changes = {"enforcementMode": ["monitor", "enforce"], "fallbackAction": ["deny", "allow"]}
    assert await new_entries.summaries() == [("domain.mode", domain(areas), changes)]


async def test_a_reverted_mode_is_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """The actor of a revert is the service, not the token that set the mode."""
    with acting_as(Actor("token", "ci", 7)):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=1)
    reverts_at = iso(areas.clock() + 60_000_000)
    areas.clock.pass_by(60)
    await Reverts(areas.domains, areas.cluster, areas.clock).revert_due()
    rows = await new_entries.rows()
    assert [(row.action, row.actor) for row in rows] == [("domain.mode", "ci"), ("domain.revert", "")]
    assert f'"revertsAt": ["{reverts_at}", null]' in rows[1].changes
    assert '"enforcementMode": ["enforce", "monitor"]' in rows[1].changes


async def test_a_confirmed_mode_is_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """If an admin confirms a temporary mode, the entry has only the time at which the mode would have been reverted."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=1)
    await new_entries.rows()
    await areas.domains.set_mode([areas.domain], None)
    ((action, _, changes),) = await new_entries.summaries()
    assert (action, list(changes)) == ("domain.mode", ["revertsAt"])


async def test_break_glass_is_recorded_for_changed_domains(areas: Areas, new_entries: NewEntries) -> None:
    """Break-glass and its restore add no entry for a domain that is already in monitor mode."""
    await areas.domains.add(areas.tenant, "calm")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await new_entries.rows()
    for _ in range(2):
        await areas.domains.break_glass()
    for _ in range(2):
        await areas.domains.restore()
    broken = {"enforcementMode": ["enforce", "monitor"], "restoreMode": [None, "enforce"]}
    assert await new_entries.summaries() == [
        ("domain.break_glass", domain(areas), broken),
        ("domain.restore", domain(areas), {name: pair[::-1] for name, pair in broken.items()}),
    ]


async def test_setting_a_mode_during_break_glass_is_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """If an admin sets the mode during break-glass, the entry shows that the mode will not be restored."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await areas.domains.break_glass()
    await new_entries.rows()
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert await new_entries.summaries() == [("domain.mode", domain(areas), {"restoreMode": ["enforce", None]})]


async def test_a_client_is_recorded_when_added_changed_and_deleted(areas: Areas, new_entries: NewEntries) -> None:
    """The entries of a RADIUS client have every field, and `HIDDEN` instead of the secret."""
    client = await areas.client("192.0.2.1/32", name="nps", product="Microsoft NPS")
    await areas.clients.update(areas.tenant, client.id, {"name": "nps-1"}, secret=b"another", domain_ids=[areas.domain])
    await areas.clients.update(areas.tenant, client.id, {"name": "nps-1"})
    await areas.clients.delete(areas.tenant, client.id)
    added, updated, deleted = await new_entries.summaries()
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
async def test_the_entry_of_a_client_matches_the_store(
    areas: Areas, new_entries: NewEntries, changes: dict[str, Value]
) -> None:
    """The values before and after include the client's latches."""
    client = await areas.client("192.0.2.1/32", name="nps")
    for what in (SIGNED, LIMITED):
        areas.clients.latches.latch(client, what)
    await areas.clients.latches.store()
    before = await areas.store.read(lambda tx: described(tx, areas.tenant, client.id))
    await new_entries.rows()
    await areas.clients.update(areas.tenant, client.id, changes, domain_ids=[areas.domain, areas.domain])
    after = await areas.store.read(lambda tx: described(tx, areas.tenant, client.id))
    assert await new_entries.summaries() == [("client.update", f"client {client.id} nps", changed(before, after))]


async def test_an_import_is_recorded_for_each_client(areas: Areas, new_entries: NewEntries) -> None:
    """A new or changed client has an entry, and an unchanged one has none."""
    same, other = [await areas.client(f"192.0.2.{number}/32", name=f"c{number}") for number in (1, 2)]
    await new_entries.rows()
    wanted = [
        Wanted(same.name, str(same.network), SECRET, None, "auto", "auto", None),
        Wanted(other.name, str(other.network), SECRET, "Cisco ISE", "auto", "auto", None),
        Wanted("new", "192.0.2.3/32", SECRET, None, "auto", "auto", None),
    ]
    await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted))
    updated, added = await new_entries.summaries()
    assert updated == ("client.update", f"client {other.id} c2", {"product": ["", "Cisco ISE"]})
    assert added[0] == "client.add"


async def test_a_latch_is_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """The service is the actor of a latch, and an admin the actor of its removal."""
    client = await areas.client("192.0.2.1/32", name="nps")
    await new_entries.rows()
    for what in (SIGNED, LIMITED):
        areas.clients.latches.latch(client, what)
    await areas.clients.latches.store()
    await areas.clients.latches.store()
    await areas.clients.latches.unlatch(client)
    target = f"client {client.id} nps"
    assert await new_entries.summaries() == [
        ("client.latch", target, {"signatureLearned": [False, True]}),
        ("client.latch", target, {"proxyStateLimitLearned": [False, True]}),
        ("client.unlatch", target, {"signatureLearned": [True, False], "proxyStateLimitLearned": [True, False]}),
    ]


async def test_a_latch_of_a_deleted_client_is_not_recorded(areas: Areas, new_entries: NewEntries) -> None:
    client = await areas.client("192.0.2.1/32")
    areas.clients.latches.latch(client, SIGNED)
    await areas.clients.delete(areas.tenant, client.id)
    await new_entries.rows()
    await areas.clients.latches.store()
    assert await new_entries.rows() == []


async def test_a_provider_is_recorded_when_set_changed_and_deleted(areas: Areas, new_entries: NewEntries) -> None:
    """The entries have `HIDDEN` instead of secrets. If a provider of another kind is set, the entry shows the fields of
    the former one as removed.
    """
    radius = {"host": "192.0.2.7", "secret": "hunter2"}
    await areas.providers.set(areas.domain, "radius", radius, 60)
    await areas.providers.set(areas.domain, "radius", {**radius, "port": 1645}, 45)
    await areas.providers.set(areas.domain, "totp", {}, 45)
    await areas.providers.delete(areas.domain)
    summaries = await new_entries.summaries()
    assert [(action, target) for action, target, _ in summaries] == [
        ("provider.set", f"MFA provider radius of domain {areas.domain}"),
        ("provider.set", f"MFA provider radius of domain {areas.domain}"),
        ("provider.set", f"MFA provider totp of domain {areas.domain}"),
        ("provider.delete", f"MFA provider totp of domain {areas.domain}"),
    ]
    assert [changes for *_, changes in summaries] == [
        {
            "provider": [None, "radius"], "timeoutSeconds": [None, 60], "host": [None, "192.0.2.7"],
            "port": [None, 1812], "secret": [None, HIDDEN],
        },
        {"timeoutSeconds": [60, 45], "port": [1812, 1645], "secret": [HIDDEN, HIDDEN]},
        {"provider": ["radius", "totp"], "host": ["192.0.2.7", None], "port": [1645, None], "secret": [HIDDEN, None]},
        {"provider": ["totp", None], "timeoutSeconds": [45, None]},
    ]  # fmt: skip


async def test_an_unreadable_provider_can_be_replaced(areas: Areas, new_entries: NewEntries) -> None:
    """If the secrets of the former provider cannot be read, the entry has only the fields that are not encrypted."""
    await areas.providers.set(areas.domain, "webhook", {"url": "https://h.example/x", "secret": "hunter2"}, 60)
    await new_entries.rows()
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set fields = :octets", octets=b"\0"))
    await areas.configuration.reload()
    await areas.providers.set(areas.domain, "totp", {}, 60)
    ((*_, changes),) = await new_entries.summaries()
    assert changes == {"provider": ["webhook", "totp"]}


async def test_a_rule_is_recorded_when_added_changed_and_deleted(areas: Areas, new_entries: NewEntries) -> None:
    """A change that sets the same values adds no entry."""
    rule_id = await areas.rules.add(areas.domain, RuleFields(name="vip", action="allow", users=["ann"]))
    await areas.rules.update(areas.domain, rule_id, RuleFields(users=["ann", "bob"]))
    await areas.rules.update(areas.domain, rule_id, RuleFields(users=["ann", "bob"]))
    await areas.rules.delete(areas.domain, [rule_id, rule_id])
    added, updated, deleted = await new_entries.summaries()
    assert added[:2] == ("rule.add", f"rule {rule_id} vip")
    assert added[2] | {"action": [None, "allow"], "users": [None, ["ann"]]} == added[2]
    assert updated == ("rule.update", f"rule {rule_id} vip", {"users": [["ann"], ["ann", "bob"]]})
    assert (deleted[0], deleted[2]["users"]) == ("rule.delete", [["ann", "bob"], None])


async def test_deleted_devices_are_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """Each deleted device has its own entry in the audit trail of the domain."""
    client = await areas.client("192.0.2.1/32")
    request = opened(access_request(attributes(NAS_IDENTIFIER=b"fw-1")))
    device = areas.devices.sightings.device(request, "192.0.2.1", client, areas.domain, areas.clock())
    await areas.store.write(lambda tx: write_first_sightings(tx, [(device, None)]))
    await new_entries.rows()
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ci")
    (row,) = await new_entries.rows()
    assert (row.action, row.target, row.domain_id) == ("device.delete", f"device {device.id} fw-1", areas.domain)
    assert '"ip_address": ["192.0.2.1", null]' in row.changes


def copies(areas: Areas) -> Copies:
    """Return the backup service of the areas' store."""
    return Copies(
        areas.store,
        areas.settings.database_path,
        check=lambda _tx: None,
        replaced=areas.configuration.restored,
        backed_up=lambda _at: None,
        clock=areas.clock,
    )


async def test_a_backup_is_recorded_for_the_installation(areas: Areas, new_entries: NewEntries, tmp_path: Path) -> None:
    """A complete backup adds one entry, and a failed one adds none."""
    with pytest.raises(StoreError):
        await copies(areas).backup(tmp_path / "none" / "b.db")
    await copies(areas).backup(tmp_path / "b.db")
    (row,) = await new_entries.rows()
    assert (row.action, row.tenant_id, row.target) == ("store.backup", INSTALLATION, f"backup {tmp_path / 'b.db'}")


async def test_a_restore_is_recorded_in_the_restored_store(areas: Areas, tmp_path: Path) -> None:
    """Each tenant in the restored store has an entry with the actor. A failed restore adds no entry."""
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


async def test_a_refused_change_is_not_recorded(areas: Areas, new_entries: NewEntries) -> None:
    """A refused change adds no entry, whatever the reason is and however late it is refused."""
    await areas.client("192.0.2.1/32", name="nps")
    await new_entries.rows()
    with pytest.raises(Conflict):
        await areas.domains.add(areas.tenant, "CORP")
    with pytest.raises(Conflict):
        await areas.clients.add_all(areas.tenant, [NewClient("new", "192.0.2.2/32"), NewClient("nps", "192.0.2.3/32")])
    with pytest.raises(NotFound):
        await areas.clients.update(areas.tenant + 1, 1, {"name": "x"})
    with pytest.raises(NotFound):
        await areas.providers.delete(areas.domain)
    rule_id = await areas.rules.add(areas.domain, RuleFields(name="r", action="block", everyone=True))
    await new_entries.rows()
    with pytest.raises(NotFound):
        await areas.rules.delete(areas.domain, [rule_id, rule_id + 1])
    with pytest.raises(NotFound):
        await areas.devices.delete(areas.domain, device_ids=[99], addresses=None, actor="")
    assert await new_entries.rows() == []
    assert [rule.id for rule in areas.rules.all_of(areas.domain)] == [rule_id]


async def test_a_change_without_an_entry_is_rolled_back(areas: Areas, new_entries: NewEntries) -> None:
    """A change and its entry are one transaction: if the entry cannot be written, the change is rolled back."""
    await refuse(areas.store, "before insert on audit_trail")
    with pytest.raises(StoreError, match="refused"):
        await areas.client("192.0.2.1/32")
    with pytest.raises(StoreError, match="refused"):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert areas.clients.table.by_id == {}
    assert areas.domains.table.by_id[areas.domain].mode is Mode.MONITOR
    assert await new_entries.rows() == []


async def test_an_entry_is_never_altered(areas: Areas) -> None:
    """The store refuses to change an entry for every actor."""
    with pytest.raises(StoreError, match="append-only"):
        await areas.store.write(lambda tx: tx.execute("update audit_trail set actor = 'nobody'"))


async def test_a_long_value_is_truncated(areas: Areas, new_entries: NewEntries) -> None:
    """A long text and the JSON of a long list are truncated. Short values are unchanged."""

    def work(tx: Tx) -> None:
        long = {"text": [None, "x" * 5000], "list": [list(range(5000)), []], "short": [1, None]}
        audit.record(tx, "thing.set", at=1, tenant_id=areas.tenant, target="thing 1", changes=long)

    await areas.store.write(work)
    ((*_, changes),) = await new_entries.summaries()
    assert changes["text"] == [None, "x" * audit.MAX_LENGTH + "..."]
    assert changes["short"] == [1, None]
    beginning, empty = changes["list"]  # type: ignore[misc]
    assert beginning.startswith("[0, 1, 2") and len(beginning) == audit.MAX_LENGTH + 3 and empty == []

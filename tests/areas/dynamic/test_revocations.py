"""When access is revoked in a domain with disconnect_on_revoke, live sessions are ended."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.dynamic.revocations import AT_ONCE, Revocations
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Action as Verdict
from sallyport.areas.users.accounts.account import Removal
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action
from sallyport.base.errors import NotFound
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.directory.reading.graph_server import GraphServer
from tests.areas.directory.test_partial_objects import entra
from tests.areas.directory.world import at_work as imports_at_work
from tests.areas.directory.world import over
from tests.areas.dynamic.nas import FakeNas, ack, nak, running_nas, silent
from tests.areas.dynamic.world import STOP, Device, device, session, trail
from tests.areas.mfa.web import serving
from tests.waiting import until

LOCAL = "127.0.0.1"
PASSWORD = b"the password"


@asynccontextmanager
async def at_work(areas: Areas) -> AsyncIterator[None]:
    """Carry out revocations until the block ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.revocations.run)
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def nas_of(areas: Areas) -> AsyncIterator[tuple[FakeNas, Device]]:
    """Run a NAS of the domain corp that acknowledges each request. The domain has disconnect_on_revoke."""
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        yield nas, await device(areas, client, LOCAL, NAS_IDENTIFIER=b"ap-1")


async def left(areas: Areas) -> int:
    """Return the number of pending revocations."""
    return await areas.store.read(lambda tx: tx.value(int, "select count(*) from revocations") or 0)


async def done(areas: Areas) -> None:
    """Wait until no revocation is pending."""

    async def is_done() -> bool:
        return await left(areas) == 0

    await until(is_done, seconds=60)


def ended(nas: FakeNas) -> list[bytes]:
    """Return the Acct-Session-Ids of the sessions in the requests to the NAS."""
    return sorted(nas.values(number)[44] for number in range(len(nas.requests)))


async def test_deleting_a_user_ends_the_sessions(areas: Areas) -> None:
    """When a user is deleted, the user's sessions end at all devices of the tenant, under each name that a device
    reports. Other sessions do not end.
    """
    branch = await areas.domains.add(areas.tenant, "branch")
    async with nas_of(areas) as (nas, corp):
        client = areas.clients.table.find(LOCAL)
        assert client is not None
        elsewhere = await device(areas, client, LOCAL, domain=branch, NAS_IDENTIFIER=b"ap-2")
        for name in ("ann", "bob"):
            await areas.add_user(areas.domain, name, PASSWORD)
        await session(areas, corp, "1", USER_NAME="ann")
        await session(areas, corp, "2", USER_NAME="CORP\\ann")
        await session(areas, elsewhere, "3", USER_NAME="ann@corp")
        await session(areas, elsewhere, "4", USER_NAME="ann")  # in the domain branch
        await session(areas, corp, "5", USER_NAME="bob")
        async with at_work(areas):
            await areas.remove_user(areas.domain, "ann")
            await done(areas)
    assert ended(nas) == [b"1", b"2", b"3"]
    entries = await trail(areas)
    assert len(entries) == 3
    assert json.loads(entries[0][2]) == {"reason": [None, "the user was deleted"], "outcome": [None, "ack"]}


async def test_a_domain_without_the_setting_keeps_sessions(areas: Areas) -> None:
    """A domain in which disconnect_on_revoke is off keeps the sessions."""
    async with nas_of(areas) as (nas, corp):
        await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": False}))
        await areas.add_user(areas.domain, "ann", PASSWORD)
        await session(areas, corp, "1", USER_NAME="ann")
        await areas.remove_user(areas.domain, "ann")
        assert await left(areas) == 0
        assert nas.requests == []


async def test_a_failed_deletion_revokes_no_session(areas: Areas) -> None:
    """The revocation is written in the transaction of the deletion, so a failed deletion revokes nothing."""
    async with nas_of(areas):
        ann = await areas.add_user(areas.domain, "ann", PASSWORD)
        with pytest.raises(NotFound):
            await areas.accounts.remove(areas.domain, [Removal(ann, "", 0), Removal(ann + 1000, "", 0)])
        assert await left(areas) == 0


async def test_a_pending_revocation_survives_a_restart(areas: Areas) -> None:
    """A stored revocation is carried out by the next service that runs."""
    async with nas_of(areas) as (nas, corp):
        await areas.add_user(areas.domain, "ann", PASSWORD)
        await session(areas, corp, "1", USER_NAME="ann")
        await areas.remove_user(areas.domain, "ann")
        assert await left(areas) == 1
        assert nas.requests == []
        areas.revocations = Revocations(
            areas.store, areas.cluster, areas.dynamic, areas.domains, areas.rules, areas.clock
        )
        async with at_work(areas):
            await done(areas)
        assert ended(nas) == [b"1"]


async def test_a_session_that_begins_after_the_revocation_ends(areas: Areas) -> None:
    """A session whose accounting starts after the first look-up is ended too. The NAS gets no second request for the
    other sessions.
    """
    areas.revocations = Revocations(
        areas.store, areas.cluster, areas.dynamic, areas.domains, areas.rules, areas.clock, late_s=5.0
    )
    async with nas_of(areas) as (nas, corp), at_work(areas):
        await session(areas, corp, "early", USER_NAME="ann")
        await areas.store.write(lambda tx: areas.revocations.revoke(tx, areas.domain, ["ann"], "a test"))
        await done(areas)
        await session(areas, corp, "late", USER_NAME="ann")
        await until(lambda: len(nas.requests) == 2, seconds=60)
        assert [nas.values(number)[44] for number in (0, 1)] == [b"early", b"late"]


async def test_a_refusal_of_the_nas_is_final(areas: Areas) -> None:
    """If the NAS refuses, this is reported, and the NAS gets no further request."""
    async with nas_of(areas) as (nas, corp):
        nas.script = nak(504)
        await areas.add_user(areas.domain, "ann", PASSWORD)
        await session(areas, corp, "1", USER_NAME="ann")
        async with at_work(areas):
            await areas.remove_user(areas.domain, "ann")
            await done(areas)
        assert len(nas.requests) == 1
    ((_, _, changes),) = await trail(areas)
    assert json.loads(changes)["error"] == [None, "Session-Context-Not-Removable"]


async def test_more_users_than_one_batch_are_revoked(areas: Areas) -> None:
    """If more users are revoked than fit into a batch, all of them lose their sessions."""
    async with nas_of(areas) as (nas, corp):
        for number in range(150):
            await session(areas, corp, str(number), USER_NAME=f"u{number}")
        async with at_work(areas):
            people = [f"u{number}" for number in range(150)]
            await areas.store.write(lambda tx: areas.revocations.revoke(tx, areas.domain, people, "a test"))
            await done(areas)
        assert len(set(ended(nas))) == 150


async def test_silent_devices_do_not_delay_another_tenant(areas: Areas) -> None:
    """If the devices of one tenant are silent, the revocations of that tenant wait. Those of another tenant are carried
    out.
    """
    tenant = await areas.tenancy.ensure_tenant(2, 1)
    other = await areas.domains.add(tenant, "other")
    await areas.domains.update(other, Update(settings={"disconnect_on_revoke": True}))
    people = [f"u{number}" for number in range(2 * AT_ONCE)]
    async with nas_of(areas) as (nas, corp), running_nas(silent, "127.0.0.2") as away:
        client = await areas.client("127.0.0.2", coa_port=away.port, tenant=tenant)
        elsewhere = await device(areas, client, "127.0.0.2", domain=other, NAS_IDENTIFIER=b"ap-9")
        for name in people:
            await session(areas, elsewhere, name, USER_NAME=name)
        await session(areas, corp, "1", USER_NAME="ann")
        await areas.store.write(lambda tx: areas.revocations.revoke(tx, other, people, "a test"))
        await areas.store.write(lambda tx: areas.revocations.revoke(tx, areas.domain, ["ann"], "a test"))
        async with at_work(areas):
            await until(lambda: bool(nas.requests), seconds=20)
    assert ended(nas) == [b"1"]
    assert await left(areas) >= AT_ONCE


async def grouped(areas: Areas, corp: Device) -> tuple[int, dict[str, int]]:
    """Return the ID of the group ops, which a login rule names, and the IDs of ann, bob and cid by name. Ann and bob
    are members of the group. All three have sessions.
    """
    ids = {name: await areas.add_user(areas.domain, name, PASSWORD) for name in ("ann", "bob", "cid")}
    for name in ids:
        await session(areas, corp, name, USER_NAME=name)
    group = await areas.groups.add(areas.domain, Group("ops"))
    await areas.groups.assign_users(areas.domain, group, [ids["ann"], ids["bob"]], Action.ADD)
    rule = RuleFields(name="r", action=Verdict.ALLOW, groups=["OPS"])
    await areas.rules.add(areas.domain, rule)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    return group, ids


async def test_leaving_a_group_ends_the_sessions(areas: Areas) -> None:
    """A member who leaves a group that a login rule names loses the sessions. A user that was not a member keeps them,
    even if the request names it.
    """
    async with nas_of(areas) as (nas, corp):
        group, ids = await grouped(areas, corp)
        async with at_work(areas):
            await areas.groups.assign_users(areas.domain, group, [ids["ann"], ids["cid"]], Action.REMOVE)
            await done(areas)
        assert ended(nas) == [b"ann"]
    assert json.loads((await trail(areas))[0][2])["reason"] == [None, "the user left the group ops"]


async def test_deactivating_a_group_ends_the_sessions_of_its_members(areas: Areas) -> None:
    """When a group is deactivated, its members lose their sessions. A change of case in the name of the group ends no
    session, and neither does the deletion of an inactive group.
    """
    async with nas_of(areas) as (nas, corp):
        group, _ = await grouped(areas, corp)
        async with at_work(areas):
            await areas.groups.edit(areas.domain, group, {"name": "Ops", "ou": "x"})
            assert await left(areas) == 0
            await areas.groups.edit(areas.domain, group, {"status": "inactive"})
            await done(areas)
            assert ended(nas) == [b"ann", b"bob"]
            await areas.groups.delete(areas.domain, [group])  # an inactive group gave no access
            assert await left(areas) == 0
    assert len(nas.requests) == 2


async def test_losing_a_group_in_monitor_mode_ends_no_session(areas: Areas) -> None:
    """In monitor mode rules do not block users, so losing a group ends no session."""
    async with nas_of(areas) as (_, corp):
        group, _ = await grouped(areas, corp)
        await areas.domains.set_mode([areas.domain], Mode.MONITOR)
        await areas.groups.delete(areas.domain, [group])
        assert await left(areas) == 0


async def test_losing_a_group_without_a_rule_ends_no_session(areas: Areas) -> None:
    """If no enabled rule names a group, it gives no access, so losing it ends no session."""
    async with nas_of(areas) as (_, corp):
        group, _ = await grouped(areas, corp)
        rules = [rule.id for rule in areas.rules.all_of(areas.domain)]
        await areas.rules.update(areas.domain, rules[0], RuleFields(enabled=False))
        await areas.groups.delete(areas.domain, [group])
        assert await left(areas) == 0


async def test_a_certificate_of_another_tenant_ends_no_session(areas: Areas) -> None:
    """A certificate is valid only in its own tenant, so its revocation ends no session in another tenant."""
    async with nas_of(areas) as (_, corp):
        await session(areas, corp, "1", USER_NAME="ann")
        other = await areas.tenancy.ensure_tenant(2, 1)
        await areas.revocations.revoke_certified([("ann", other)])
        await areas.domains.add(other, "corp")
        await areas.revocations.revoke_certified([("ann@corp", other)])
        revoked = await areas.store.read(
            lambda tx: tx.rows("select domain_id from revocations where domain_id = :d", d=areas.domain)
        )
        assert revoked == []


async def test_revoking_a_certificate_ends_the_sessions(areas: Areas) -> None:
    """When a certificate is revoked, the sessions of its user end in the domain where it gave access. If there are
    several domains, this is the domain of the realm in its name. For a computer, the sessions of `host/NAME` end too.
    """
    async with nas_of(areas) as (nas, corp):
        await session(areas, corp, "1", USER_NAME="ann")
        await session(areas, corp, "2", USER_NAME="host/pc1.example")
        await session(areas, corp, "3", USER_NAME="bob")
        async with at_work(areas):
            await areas.revocations.revoke_certified([("Ann", areas.tenant), ("pc1.example", None)])
            await done(areas)
            assert ended(nas) == [b"1", b"2"]
            await areas.domains.add(areas.tenant, "branch")
            await areas.revocations.revoke_certified([(name, None) for name in ("bob", "bob@branch", "bob@nowhere")])
            await done(areas)
            assert ended(nas) == [b"1", b"2"]
            await areas.revocations.revoke_certified([("bob@corp", areas.tenant)])
            await done(areas)
    assert ended(nas) == [b"1", b"2", b"3"]
    assert json.loads((await trail(areas))[0][2])["reason"] == [None, "the client certificate was revoked"]


async def test_one_session_ends(areas: Areas) -> None:
    """A revocation of one session ends only this session, without disconnect_on_revoke. A session that is over gets no
    request."""
    async with nas_of(areas) as (nas, corp), at_work(areas):
        await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": False}))
        first = await session(areas, corp, "1", USER_NAME="ann")
        await session(areas, corp, "2", USER_NAME="ann")
        over = await session(areas, corp, "3", USER_NAME="ann")
        await session(areas, corp, "3", STOP, after_s=5, USER_NAME="ann")

        def end(tx: Tx) -> None:
            for each in (over, first):
                areas.revocations.end_session(tx, areas.domain, each, "ann", "too many parallel sessions")

        await areas.store.write(end)
        await done(areas)
        assert ended(nas) == [b"1"]
        assert [json.loads(changes)["reason"] for _, _, changes in await trail(areas)] == [
            [None, "too many parallel sessions"]
        ]


async def test_a_revocation_with_a_lower_id_is_stored_later(areas: Areas) -> None:
    """Of two nodes that store revocations at the same time, the node with the lower id may commit later."""

    def stored(number: int, target: int) -> Callable[[Tx], object]:
        same = {"id": number, "domain_id": areas.domain, "reason": "a", "at": 0, "session_id": target}
        return lambda tx: tx.insert("revocations", ("user_name",), [("ann",)], same=same)

    async with nas_of(areas) as (nas, corp):
        one, two = [await session(areas, corp, each, USER_NAME="ann") for each in ("1", "2")]
        async with at_work(areas):
            await areas.store.write(stored(20, one))
            await done(areas)
            await areas.store.write(stored(10, two))
            await done(areas)
        assert ended(nas) == [b"1", b"2"]


async def test_a_person_who_is_disabled_in_the_cloud_loses_the_sessions(areas: Areas) -> None:
    """The sessions end with the next reading of the directory, under each name that a device may report: the login name
    with and without the realm, and the mail address, which may be the name in the certificate."""
    await areas.domains.update(areas.domain, Update(add_realms=["corp.example"]))
    server = GraphServer()
    async with nas_of(areas) as (nas, corp), serving(server) as server.web:
        server.add_user("u1", "ann@corp.example", mail="ann.lee@corp.example")
        server.add_user("u2", "ben@corp.example")
        for number, name in enumerate(("ann", "ann@corp.example", "CORP\\ann", "ann.lee@corp.example", "ben"), start=1):
            await session(areas, corp, str(number), USER_NAME=name)
        await areas.directory.directories.save([(areas.domain, entra(server))])
        for change in (None, {"id": "u1", "accountEnabled": False}):
            if change is not None:
                server.change("users", change)
            async with imports_at_work(areas):
                job = await over(areas, await areas.directory.directories.sync(areas.domain, "c", full=False))
            assert job.state == "DONE", job.message
        async with at_work(areas):
            await done(areas)
    assert ended(nas) == [b"1", b"2", b"3", b"4"]

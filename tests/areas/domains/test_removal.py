"""The removal of a domain: when it is refused, what ends at once, and how the rows are deleted."""

from functools import partial

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.removal import GRACE_S
from sallyport.areas.tenancy.keys.key import Agent, NewKey
from sallyport.base.errors import Conflict, NotFound, Unauthenticated
from sallyport.store.model import Tx
from sallyport.store.slices import SLICE
from tests.areas import Areas


async def branch(areas: Areas) -> int:
    """Add a second domain that has a user and a provider, and return its id."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    await areas.add_user(domain_id, "ann", b"Correct-Horse-7-Battery")
    return domain_id


async def rows_of(areas: Areas, domain_id: int) -> int:
    """Return the number of rows that belong to a domain, including its own row."""

    def count(tx: Tx) -> int:
        tables = [each.table for each in areas.app.areas.erased_rows]
        own = tx.value(int, "select count(*) from domains where id = :d", d=domain_id) or 0
        sqls = (f"select count(*) from {table} where domain_id = :d" for table in tables)  # noqa: S608
        return own + sum(tx.value(int, sql, d=domain_id) or 0 for sql in sqls)

    return await areas.store.read(count)


def add_event(tx: Tx, domain_id: int, at: int) -> None:
    """Add a login to the login log."""
    tx.execute(
        "insert into events (at, domain_id, user_name, ip_address, client_ip, device_id, device_name, station, "
        "method, factor, decision, applied_decision, would_have_been, reason, latency_us) "
        "values (:at, :d, '', '', '', 0, '', '', '', '', '', '', '', '', 0)",
        at=at,
        d=domain_id,
    )


async def test_the_preview_counts_the_rows_to_delete(areas: Areas) -> None:
    """The preview has the number of rows of each kind that would be deleted. It changes nothing."""
    domain_id = await branch(areas)
    domain, deleted = await areas.removal.preview(domain_id)
    assert (domain.name, deleted) == ("branch", [("endpoint users", 1)])
    assert domain_id in areas.domains.table.by_id


async def test_the_default_domain_of_a_client_is_not_removed(areas: Areas) -> None:
    """The first domain of a client cannot be removed. If a client has no domain, this is the first domain of the
    tenant. The refusal names the clients. If the domain is a later one of a client, it is taken from the client.
    """
    domain_id = await branch(areas)
    await areas.client("192.0.2.1/32", name="gate", domain_ids=(domain_id, areas.domain))
    with pytest.raises(Conflict, match="default of 1 RADIUS client: gate;"):
        await areas.removal.remove(domain_id)
    await areas.client("192.0.2.2/32", name="all")
    with pytest.raises(Conflict, match="default of 1 RADIUS client: all;"):
        await areas.removal.preview(areas.domain)
    third = await areas.domains.add(areas.tenant, "third")
    await areas.client("192.0.2.3/32", name="both", domain_ids=(areas.domain, third))
    await areas.removal.remove(third)
    assert areas.client_named("both").domain_ids == (areas.domain,)


async def test_a_refusal_names_five_clients(areas: Areas) -> None:
    """A refusal names five clients and has the number of the others."""
    for number in range(7):
        await areas.client(f"192.0.2.{number}/32", name=f"c{number}", domain_ids=(areas.domain,))
    with pytest.raises(Conflict, match="7 RADIUS clients: c0, c1, c2, c3, c4 and 2 more;"):
        await areas.removal.remove(areas.domain)


async def test_a_domain_with_a_waiting_import_is_not_removed(areas: Areas) -> None:
    """A domain with a waiting import cannot be removed until the import has ended."""
    domain_id = await branch(areas)

    def add(tx: Tx) -> None:
        tx.execute(
            "insert into directories (domain_id, name, name_key, kind, account_name, app_url, settings, created_at, "
            "updated_at) values (:d, 'n', 'n', 'ldap', '', '', '{}', 0, 0)",
            d=domain_id,
        )
        tx.execute(
            "insert into directory_jobs (domain_id, directory_id, kind, state, file_name, file, complete, source, "
            "created_at) select domain_id, id, 'ldif', 'QUEUED', '', '', 0, '', 0 from directories"
        )

    await areas.store.write(add)
    with pytest.raises(Conflict, match="an import of the domain is waiting or running"):
        await areas.removal.remove(domain_id)
    await areas.store.write(lambda tx: tx.execute("update directory_jobs set state = 'DONE'"))
    await areas.removal.remove(domain_id)


async def test_a_removed_domain_is_gone_at_once(areas: Areas) -> None:
    """A removed domain is found by no list, login, key or change, even before its rows are deleted. A second removal is
    refused. The audit trail has the removal.
    """
    domain_id = await branch(areas)
    _, key = await areas.keys.create(NewKey(domain_id, Agent.ENDPOINT))
    assert (await areas.app.tenancy.authentication.authenticate(key)).domain_id == domain_id
    await areas.first_settings.set(areas.domains.table.by_id[domain_id], FirstFactor.LOCAL, {})
    await areas.removal.remove(domain_id)
    assert [each.name for each in areas.domains.of_tenant(areas.tenant)] == ["corp"]
    assert areas.domains.table.by_realm(areas.tenant, "branch.example") is None
    with pytest.raises(Unauthenticated):
        await areas.app.tenancy.authentication.authenticate(key)
    with pytest.raises(NotFound):
        await areas.removal.remove(domain_id)
    with pytest.raises(NotFound):
        await areas.add_user(domain_id, "late", b"Correct-Horse-7-Battery")
    found = await areas.store.read(
        lambda tx: tx.rows(
            "select target from audit_trail where action = 'domain.remove' and domain_id = :d", d=domain_id
        )
    )
    assert found == [(f"domain {domain_id} branch",)]


async def test_the_name_of_a_removed_domain_is_free(areas: Areas) -> None:
    """A new domain can have the name and the realm of a removed one, even while rows of the removed one remain. It has
    none of these rows.
    """
    domain_id = await branch(areas)
    await areas.removal.remove(domain_id)
    new = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    assert new != domain_id
    assert (await areas.removal.preview(new))[1] == []
    await areas.add_user(new, "ann", b"Correct-Horse-8-Battery")
    await areas.removal.erase(grace_s=0)
    assert (await areas.removal.preview(new))[1] == [("endpoint users", 1)]


async def test_break_glass_ignores_removed_domains(areas: Areas) -> None:
    """The results of break-glass and of its end only list domains that exist."""
    await areas.removal.remove(await branch(areas))
    assert await areas.domains.break_glass() == [areas.domain]
    assert await areas.domains.restore() == [areas.domain]


async def test_rows_are_deleted_in_two_steps(areas: Areas) -> None:
    """The rows of the domain are deleted at once. The row of the domain itself is deleted after the grace period,
    together with rows that were added meanwhile.
    """
    domain_id = await branch(areas)
    await areas.removal.remove(domain_id)
    await areas.removal.erase()
    assert await rows_of(areas, domain_id) == 1
    await areas.store.write(partial(add_event, domain_id=domain_id, at=0))
    areas.clock.pass_by(GRACE_S - 1)
    await areas.removal.erase()
    assert await rows_of(areas, domain_id) == 1
    areas.clock.pass_by(1)
    await areas.removal.erase()
    assert await rows_of(areas, domain_id) == 0
    assert areas.domain in areas.domains.table.by_id


async def test_a_device_added_after_the_removal_is_deleted(areas: Areas) -> None:
    """A login in progress may still add a device to the removed domain. The deletion also deletes this device."""
    domain_id = await branch(areas)
    await areas.removal.remove(domain_id)
    await areas.removal.erase()
    await areas.store.write(
        lambda tx: tx.execute(
            "insert into devices (domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, "
            "device_type_certainty, nas_device_type, nas_port_type, first_seen, last_seen, request_count, "
            "registrations, evidence) values (:d, '', '', '', '', '', '', '', '', 0, 0, 0, 0, '')",
            d=domain_id,
        )
    )
    await areas.removal.erase(grace_s=0)
    assert await rows_of(areas, domain_id) == 0


async def test_an_interrupted_deletion_is_resumed(areas: Areas) -> None:
    """If the service crashes between two slices, the remaining rows are deleted at the next start."""
    domain_id = await branch(areas)
    for number in range(450):
        await areas.store.write(partial(add_event, domain_id=domain_id, at=number))
    await areas.removal.remove(domain_id)
    events = next(each for each in areas.app.areas.erased_rows if each.table == "events")
    assert await areas.store.write(partial(events.erase, domain_id=domain_id)) == SLICE
    areas.clock.pass_by(GRACE_S)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.removal.run)
        with trio.fail_after(20):
            while await rows_of(areas, domain_id):
                await trio.sleep(0.01)
        assert not await areas.removal.finish()
        nursery.cancel_scope.cancel()


async def test_a_running_service_deletes_at_once(areas: Areas) -> None:
    """A removal wakes the task that deletes rows."""
    domain_id = await branch(areas)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.removal.run)
        await trio.testing.wait_all_tasks_blocked()
        await areas.removal.remove(domain_id)
        with trio.fail_after(20):
            while await rows_of(areas, domain_id) > 1:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_a_command_without_a_service_deletes_everything_at_once(areas: Areas) -> None:
    """If no service runs, the command deletes the rows and the domain itself."""
    domain_id = await branch(areas)
    await areas.removal.remove(domain_id)
    assert await areas.removal.finish()
    assert await rows_of(areas, domain_id) == 0


async def test_a_revocation_in_a_removed_domain_ends_no_session(areas: Areas) -> None:
    """If a request in progress revokes a user of a removed domain, it succeeds and ends no session."""
    domain_id = await branch(areas)
    await areas.removal.remove(domain_id)
    await areas.store.write(partial(areas.revocations.revoke, domain_id=domain_id, names=["ann"], reason="gone"))
    assert not areas.revocations.group_matters(domain_id, "staff")

"""Tests of settings that RADIUS clients learn: that a client signs its requests, and that it limits Proxy-State."""

import pytest
import trio

from sallyport.areas.clients.client import LIMITED, SIGNED
from sallyport.areas.clients.latches import AT_ONCE
from sallyport.areas.clients.service import NewClient
from sallyport.base.clock import SECOND
from tests.areas import SECRET, Areas, only_sqlite


async def history(areas: Areas) -> list[tuple[str, str, int]]:
    """Return the history of learned settings: (name, event, seconds since the start)."""
    start = 1_767_225_600
    return await areas.store.read(
        lambda tx: tx.all(
            lambda name, event, at: (name, event, at // SECOND - start),
            "select name, event, at from radius_client_history order by id",
        )
    )


async def test_a_learned_setting_is_stored(areas: Areas) -> None:
    """The client's history has the time at which it learned a setting.

    The setting is still in force after a restart.
    """
    client = await areas.client(name="nps")
    areas.clock.pass_by(5)
    areas.clients.latches.latch(client, SIGNED)
    await areas.clients.latches.store()
    areas.clients.latches.latch(client, LIMITED)
    await areas.clients.latches.store()
    later = Areas(areas.store, areas.clock)
    await later.configuration.reload()
    for each in (areas.clients.table.by_id[client.id], later.clients.table.by_id[client.id]):
        assert (each.signature_required, each.proxy_state_limited) == (True, True)
        assert (each.learns_signature, each.learns_limit) == (False, False)
    assert await history(areas) == [("nps", "signed_since", 5), ("nps", "proxy_state_limited_since", 5)]


@only_sqlite
async def test_many_latches_are_written_in_batches(areas: Areas) -> None:
    """A transaction writes at most AT_ONCE latches.

    If a client is unlatched before its latch is written, it is not latched.
    """
    new = [NewClient(f"nps{number}", f"192.0.2.{number}/32", SECRET) for number in range(2 * AT_ONCE + 1)]
    clients = [areas.clients.table.by_id[each] for each, _ in await areas.clients.add_all(areas.tenant, new)]
    for client in clients:
        areas.clients.latches.latch(client, SIGNED)
    seen = list[str]()
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(seen.append))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.clients.latches.store)
        nursery.start_soon(areas.clients.latches.unlatch, clients[-1])
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(None))
    written = [set[str]()]
    for each in seen:
        if each in {"begin immediate", "savepoint item"}:
            written.append(set())
        elif "history" in each and f"'{SIGNED}'" in each:  # the trace has one more statement for each row of a trigger
            written[-1].add(each)
    assert max(map(len, written)) == AT_ONCE
    events = [(name, event) for name, event, _ in await history(areas) if event in {SIGNED, "unlatched"}]
    assert sorted(events) == sorted([*((each.name, SIGNED) for each in clients[:-1]), (clients[-1].name, "unlatched")])


async def test_unlatching_resets_both_settings(areas: Areas) -> None:
    """After an unlatch the client may learn its settings again. The history has the event."""
    client = await areas.client(name="nps")
    areas.clients.latches.latch(client, SIGNED)
    await areas.clients.latches.store()
    await areas.clients.latches.unlatch(areas.clients.table.by_id[client.id])
    unlatched = areas.clients.table.by_id[client.id]
    assert (unlatched.signature_required, unlatched.learns_signature, unlatched.learns_limit) == (False, True, True)
    assert [event for _, event, _ in await history(areas)] == ["signed_since", "unlatched"]


@pytest.mark.parametrize(
    ("changes", "signed", "limited"),
    [
        ({"name": "other"}, True, True),
        ({"product": "Cisco ISE"}, True, True),
        ({"network": "192.0.2.1/32"}, True, True),
        ({"require_message_authenticator": "auto"}, True, True),
        ({"limit_proxy_state": "auto"}, True, True),
        ({"network": "192.0.2.2/32"}, True, True),
        ({"network": "192.0.2.0/31"}, True, True),
        ({"require_message_authenticator": "no"}, False, True),
        ({"limit_proxy_state": "no"}, True, False),
    ],
)
async def test_only_another_setting_resets_a_latch(
    areas: Areas, changes: dict[str, str | int | float | bytes | None], signed: bool, limited: bool
) -> None:
    """Setting a value to `no` resets its latch.

    Setting the same value again and changing the address do not reset it, because an operator may change an address,
    but only an admin may relax trust.
    """
    client = await areas.client("192.0.2.1/32")
    areas.clients.latches.latch(client, SIGNED)
    await areas.clients.latches.store()
    areas.clients.latches.latch(client, LIMITED)
    await areas.clients.latches.store()
    await areas.clients.update(areas.tenant, client.id, changes)
    changed = areas.clients.table.by_id[client.id]
    assert (changed.signature_required, changed.proxy_state_limited) == (signed, limited)


@pytest.mark.parametrize("written", [True, False])
async def test_a_reset_latch_stays_reset_after_a_reload(areas: Areas, written: bool) -> None:
    """If a setting was changed and changed back, it must be learned again, both in memory and in the store."""
    client = await areas.client("192.0.2.1/32")
    for what, setting in ((SIGNED, "require_message_authenticator"), (LIMITED, "limit_proxy_state")):
        areas.clients.latches.latch(areas.clients.table.by_id[client.id], what)
        if written:
            await areas.clients.latches.store()
        await areas.clients.update(areas.tenant, client.id, {setting: "no"})
        await areas.clients.update(areas.tenant, client.id, {setting: "auto"})
    await areas.clients.latches.store()
    await areas.configuration.reload()
    again = areas.clients.table.by_id[client.id]
    assert (again.signature_required, again.proxy_state_limited) == (False, False)


async def test_a_latch_of_a_deleted_client_is_ignored(areas: Areas) -> None:
    """A latch that is written after its client was deleted changes no other client."""
    client, other = await areas.client("192.0.2.1/32"), await areas.client("192.0.2.2/32")
    await areas.clients.delete(areas.tenant, client.id)
    areas.clients.latches.latch(client, SIGNED)
    await areas.clients.latches.store()
    assert not areas.clients.table.by_id[other.id].signature_required


async def test_a_latch_survives_every_reload(areas: Areas) -> None:
    """A latch is in force as soon as it is set, before it is written.

    It stays in force when other changes are made, and when the client gets another address or a range meanwhile.
    """
    client, moved = await areas.client("192.0.2.1/32"), await areas.client("192.0.2.2/32")
    for each, what in ((each, what) for each in (client, moved) for what in (SIGNED, LIMITED)):
        areas.clients.latches.latch(each, what)
    assert (client.signature_required, client.proxy_state_limited) == (True, True)
    for network in ("192.0.2.3/32", "192.0.2.4/31"):
        await areas.clients.update(areas.tenant, moved.id, {"network": network})
        for each in map(areas.clients.table.by_id.get, (client.id, moved.id)):
            assert each is not None and (each.signature_required, each.proxy_state_limited) == (True, True)
    await areas.clients.latches.store()
    await areas.configuration.reload()
    for each in map(areas.clients.table.by_id.get, (client.id, moved.id)):
        assert each is not None and (each.signature_required, each.proxy_state_limited) == (True, True)
    assert len(await history(areas)) == 4

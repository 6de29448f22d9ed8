"""Tests of API keys: creation, exchange, renewal, revocation and limits."""

import json
from dataclasses import replace

import pytest
import trio

from sallyport.areas.tenancy.guesses import BURST, Guesses
from sallyport.areas.tenancy.keys import repo
from sallyport.areas.tenancy.keys.key import ENROLMENT_US, OWN_US, Agent, KeyRecord, NewKey
from sallyport.areas.tenancy.keys.service import Keys, renew_at
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Forbidden, Invalid, NotFound, TooMany, Unauthenticated
from sallyport.base.secret import new_key, token_hash
from sallyport.store.model import ListQuery
from sallyport.store.slices import SLICE
from sallyport.web.scope import Caller, Role
from tests.areas import Areas, SetClock, stored

DAY = 86_400


async def instance(areas: Areas, name: str = "web1") -> int:
    """Add an instance to the domain."""
    return await areas.instances.add(areas.domain, Instance(name))


async def enrolment(areas: Areas, agent: Agent = Agent.ENDPOINT, **fields: int | None) -> Caller:
    """Return a caller with a new enrolment key."""
    _, key = await areas.keys.create(NewKey(areas.domain, agent, **fields))  # type: ignore[arg-type]
    return await areas.keys.authenticate(key)


async def enrolled(areas: Areas, instance_id: int) -> tuple[Caller, str]:
    """Enrol the agent of an instance. Return its caller and its key."""
    key = new_key()
    await areas.keys.exchange(await enrolment(areas, instance_id=instance_id), token_hash(key))
    return await areas.keys.authenticate(key), key


async def spend(areas: Areas, caller: Caller, instance_id: int) -> None:
    """Register an instance with an enrolment key."""
    await areas.store.write(lambda tx: areas.keys.spend(tx, caller, instance_id))


async def listed(areas: Areas) -> list[KeyRecord]:
    """Return all keys of the domain. Assert that their number equals the total."""
    found, total = await areas.keys.page(ListQuery(areas.domain, 0, 100))
    assert total == len(found)
    return found


async def test_an_enrolment_key_is_bound_to_its_domain(areas: Areas) -> None:
    """The caller of an enrolment key is bound to its domain and instance.

    It has the only role that may exchange the key.
    """
    machine = await instance(areas)
    record, key = await areas.keys.create(NewKey(areas.domain, instance_id=machine, name="web"))
    assert key.startswith("spk_") and len(key) == 47
    assert await areas.keys.authenticate(key) == Caller(
        record.id, 1, 1, areas.tenant, Role.ENROLMENT, "web", areas.domain, machine
    )
    assert record.expires_at == areas.clock() + ENROLMENT_US


async def test_the_store_contains_no_key(areas: Areas) -> None:
    """The store contains only the SHA-256 hash of a key."""
    _, key = await areas.keys.create(NewKey(areas.domain))
    assert await areas.store.read(lambda tx: tx.value(str, "select hash from api_keys")) == token_hash(key)
    assert key.encode() not in stored(areas.store)


@pytest.mark.parametrize("key", ["spk_", "spk_" + "x" * 43, "spk_" + "x" * 100_000, "spk_\0", "spk_é"])
async def test_an_unknown_key_is_refused(areas: Areas, key: str) -> None:
    """Every wrong key gets the same message."""
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await areas.keys.authenticate(key)


async def test_wrong_keys_of_a_source_are_limited(areas: Areas, clock: SetClock) -> None:
    """After many unknown keys from one source, further unknown keys from that source are refused for a time.

    Other sources are not affected.
    """
    for _ in range(BURST):
        with pytest.raises(Unauthenticated):
            await areas.keys.authenticate(new_key(), "192.0.2.1")
    for _ in range(3):
        with pytest.raises(TooMany):
            await areas.keys.authenticate(new_key(), "192.0.2.1")
    with pytest.raises(Unauthenticated):
        await areas.keys.authenticate(new_key(), "192.0.2.2")
    clock.pass_by(3600)
    with pytest.raises(Unauthenticated):
        await areas.keys.authenticate(new_key(), "192.0.2.1")


async def test_a_valid_key_is_accepted_from_a_limited_source(areas: Areas) -> None:
    """A valid key is accepted from a limited source whatever keys others send, because agents behind one proxy share
    its address."""
    _, used = await areas.keys.create(NewKey(areas.domain))
    _, fresh = await areas.keys.create(NewKey(areas.domain))
    caller = await areas.keys.authenticate(used, "192.0.2.1")
    for _ in range(BURST + 10):
        with pytest.raises((Unauthenticated, TooMany)):
            await areas.keys.authenticate(new_key(), "192.0.2.1")
    assert await areas.keys.authenticate(used, "192.0.2.1") == caller
    assert (await areas.keys.authenticate(fresh, "192.0.2.1")).role is Role.ENROLMENT


async def test_expired_and_revoked_keys_are_refused(areas: Areas, clock: SetClock) -> None:
    """An expired key is an invalid token from the microsecond of its expiry.

    A revoked key is an invalid token as soon as the revocation returns.
    """
    _, short = await areas.keys.create(NewKey(areas.domain, expires_at=clock() + SECOND))
    record, revoked = await areas.keys.create(NewKey(areas.domain))
    await areas.keys.authenticate(short)
    await areas.keys.authenticate(revoked)
    assert (await areas.keys.revoke(areas.domain, record.id)).revoked_at == clock()
    clock.pass_by(1)
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await areas.keys.authenticate(short)
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await areas.keys.authenticate(revoked)
    again = await areas.keys.revoke(areas.domain, record.id)
    assert again.revoked_at == clock() - SECOND


async def test_a_key_of_another_domain_is_not_revoked(areas: Areas) -> None:
    """A key of another domain is not found and not revoked."""
    record, key = await areas.keys.create(NewKey(areas.domain))
    other = await areas.domains.add(areas.tenant, "branch")
    for domain, key_id in ((other, record.id), (areas.domain, 10**9)):
        with pytest.raises(NotFound, match="API key not found"):
            await areas.keys.revoke(domain, key_id)
    await areas.keys.authenticate(key)


async def test_a_key_with_unsuitable_values_is_refused(areas: Areas, clock: SetClock) -> None:
    """A key is refused if its instance is in another domain, if its expiry is past or very late, or if it is for a
    directory agent and has an instance."""
    other = await areas.domains.add(areas.tenant, "branch")
    elsewhere = await areas.instances.add(other, Instance("web1"))
    with pytest.raises(NotFound, match="instance not found"):
        await areas.keys.create(NewKey(areas.domain, instance_id=elsewhere))
    for expires in (clock(), 2**62):
        with pytest.raises(Invalid, match="invalid expiresAt"):
            await areas.keys.create(NewKey(areas.domain, expires_at=expires))
    with pytest.raises(Invalid, match="a key of a directory agent has no instance"):
        await areas.keys.create(NewKey(areas.domain, Agent.DIRECTORY, instance_id=await instance(areas)))
    assert await listed(areas) == []


# --- exchange -------------------------------------------------------------------------------------------------


async def test_an_agent_exchanges_an_enrolment_key_for_its_own(areas: Areas) -> None:
    """The agent sends the hash of a key that it has generated.

    The key becomes that of the agent of the instance or, for a directory agent, of the domain.
    """
    machine = await instance(areas)
    caller, _ = await enrolled(areas, machine)
    assert (caller.role, caller.domain_id, caller.instance_id) == (Role.AGENT, areas.domain, machine)
    key = new_key()
    record = await areas.keys.exchange(await enrolment(areas, Agent.DIRECTORY), token_hash(key))
    caller = await areas.keys.authenticate(key)
    assert (caller.role, caller.domain_id, caller.instance_id) == (Role.DIRECTORY, areas.domain, None)
    assert record.expires_at == areas.clock() + OWN_US
    assert areas.clock() < renew_at(record) < record.expires_at


async def test_a_repeated_exchange_is_counted_once(areas: Areas) -> None:
    """If the answer is lost and the agent repeats the exchange with the same hash, it gets the same key, and the
    exchange counts as one use."""
    caller = await enrolment(areas, Agent.DIRECTORY, uses=1)
    hashed = token_hash(new_key())
    first = await areas.keys.exchange(caller, hashed)
    assert await areas.keys.exchange(caller, hashed) == first
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await areas.keys.exchange(caller, token_hash(new_key()))
    assert [(each.kind, each.used) for each in await listed(areas)] == [("enrolment", 1), ("own", 0)]


async def test_a_domain_key_enrols_the_machines_that_it_registered(areas: Areas) -> None:
    """A domain key can enrol only an instance that it registered; any other instance is not found.

    Each machine counts as one use.
    """
    caller = await enrolment(areas, uses=2)
    first, second, third = [await instance(areas, name) for name in ("web1", "web2", "web3")]
    with pytest.raises(NotFound, match="instance not found"):
        await areas.keys.exchange(caller, token_hash(new_key()), first)
    with pytest.raises(Invalid, match="missing instanceId"):
        await areas.keys.exchange(caller, token_hash(new_key()))
    for machine in (first, second, first):
        await spend(areas, caller, machine)
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await spend(areas, caller, third)
    for machine in (first, second):
        await areas.keys.exchange(caller, token_hash(new_key()), machine)
    with pytest.raises(NotFound, match="instance not found"):
        await areas.keys.exchange(caller, token_hash(new_key()), third)


async def test_a_machine_with_an_agent_is_not_enrolled_again(areas: Areas) -> None:
    """A key of the domain cannot replace the agent of an instance.

    An enrolment key of that instance can, and the previous key of the agent ends.
    """
    machine = await instance(areas)
    _, former = await enrolled(areas, machine)
    caller = await enrolment(areas)
    await spend(areas, caller, machine)
    with pytest.raises(Conflict, match="has an agent"):
        await areas.keys.exchange(caller, token_hash(new_key()), machine)
    await areas.keys.authenticate(former)
    _, key = await enrolled(areas, machine)
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.keys.authenticate(former)
    assert (await areas.keys.authenticate(key)).instance_id == machine


async def test_a_bound_key_enrols_only_its_instance(areas: Areas) -> None:
    """A request with a key that is bound to an instance may name this instance. Another instance is not found."""
    machine, other = await instance(areas), await instance(areas, "web2")
    caller = await enrolment(areas, instance_id=machine)
    with pytest.raises(NotFound, match="instance not found"):
        await areas.keys.exchange(caller, token_hash(new_key()), other)
    assert (await areas.keys.exchange(caller, token_hash(new_key()), machine)).instance_id == machine


async def test_a_hash_of_another_agent_is_refused(areas: Areas) -> None:
    """A hash that is already used cannot be given to another agent, and cannot restore a revoked key."""
    machine, other = await instance(areas), await instance(areas, "web2")
    _, key = await enrolled(areas, machine)
    thief = await enrolment(areas, instance_id=other)
    with pytest.raises(Conflict, match="already registered"):
        await areas.keys.exchange(thief, token_hash(key))
    own = [each for each in await listed(areas) if each.kind == "own"]
    await areas.keys.revoke(areas.domain, own[0].id)
    with pytest.raises(Conflict, match="already registered"):
        await areas.keys.exchange(await enrolment(areas, instance_id=machine), token_hash(key))
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.keys.authenticate(key)


async def test_a_key_of_the_wrong_kind_enrols_no_agent(areas: Areas) -> None:
    """The key of an agent, the enrolment key of a directory, and a key that was just revoked cannot register
    a machine."""
    machine = await instance(areas)
    agent, _ = await enrolled(areas, machine)
    with pytest.raises(Forbidden, match="role not allowed"):
        await areas.keys.exchange(agent, token_hash(new_key()))
    with pytest.raises(Forbidden, match="role not allowed"):
        await spend(areas, await enrolment(areas, Agent.DIRECTORY), machine)
    caller = await enrolment(areas)
    await areas.keys.revoke(areas.domain, caller.token_id)
    with pytest.raises(Unauthenticated, match="invalid token"):
        await spend(areas, caller, machine)


# --- renewal --------------------------------------------------------------------------------------------------


async def test_a_key_is_renewed_without_a_gap(areas: Areas) -> None:
    """The old key is valid until the new key is used for the first time, even after a restart."""
    agent, old = await enrolled(areas, await instance(areas))
    new = new_key()
    first = await areas.keys.renew(agent, token_hash(new))
    assert await areas.keys.renew(agent, token_hash(new)) == first
    await areas.keys.authenticate(old)
    renewed = await areas.keys.authenticate(new)
    assert renewed == replace(agent, token_id=first.id, name=renewed.name)
    for keys in (areas.keys, Keys(areas.store, Guesses(), areas.clock, has_instance=areas.instances.in_domain)):
        await keys.authenticate(new)
        with pytest.raises(Unauthenticated, match="invalid token"):
            await keys.authenticate(old)


async def test_an_unused_successor_is_replaced(areas: Areas) -> None:
    """However often an agent renews its key with another hash, it has at most two keys."""
    agent, _ = await enrolled(areas, await instance(areas))
    keys = [new_key() for _ in range(5)]
    for key in keys:
        await areas.keys.renew(agent, token_hash(key))
    assert [each.kind for each in await listed(areas)] == ["enrolment", "own", "own"]
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.keys.authenticate(keys[0])
    await areas.keys.authenticate(keys[-1])
    assert [each.kind for each in await listed(areas)] == ["enrolment", "own"]


async def test_concurrent_first_uses_of_a_new_key_are_accepted(areas: Areas) -> None:
    agent, _ = await enrolled(areas, await instance(areas))
    key = new_key()
    await areas.keys.renew(agent, token_hash(key))
    callers: list[Caller] = []

    async def ask() -> None:
        callers.append(await areas.keys.authenticate(key))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    assert len(callers) == 20
    assert [each.kind for each in await listed(areas)] == ["enrolment", "own"]


async def test_the_last_use_is_stored_once_an_hour(areas: Areas, clock: SetClock) -> None:
    """The time of the last use is written once an hour, and not with every request."""
    record, key = await areas.keys.create(NewKey(areas.domain))
    assert record.seen_at is None
    began = clock()
    for _ in range(3):
        await areas.keys.authenticate(key)
        clock.pass_by(1799)
    assert (await listed(areas))[0].seen_at == began
    await areas.keys.authenticate(key)
    assert (await listed(areas))[0].seen_at == began + 3 * 1799 * SECOND


async def test_keys_that_ended_long_ago_are_deleted(areas: Areas, clock: SetClock) -> None:
    """When a key is created, keys that were revoked or have expired more than a year ago are deleted.

    No other keys are deleted.
    """
    revoked, _ = await areas.keys.create(NewKey(areas.domain, expires_at=clock() + 900 * DAY * SECOND))
    await areas.keys.revoke(areas.domain, revoked.id)
    _, kept = await areas.keys.create(NewKey(areas.domain, expires_at=clock() + 900 * DAY * SECOND))
    await areas.keys.create(NewKey(areas.domain, name="expired"))
    clock.pass_by(364 * DAY)
    await areas.keys.create(NewKey(areas.domain, name="new"))
    assert len(await listed(areas)) == 4
    clock.pass_by(40 * DAY)
    await areas.keys.create(NewKey(areas.domain, name="newer"))
    assert [each.name for each in await listed(areas)] == ["", "new", "newer"]
    await areas.keys.authenticate(kept)


async def test_a_key_of_many_machines_is_deleted_in_slices(areas: Areas, clock: SetClock) -> None:
    """Each new key removes SLICE machines of a key that ended long ago.

    When the old key has no machines, it is removed too.
    """
    old, _ = await areas.keys.create(NewKey(areas.domain, name="old"))
    machines = [(old.id, str(number)) for number in range(2 * SLICE + 1)]
    await areas.store.write(lambda tx: tx.insert("api_key_machines", ("key_id", "machine"), machines))
    clock.pass_by(500 * DAY)
    left, sql = [], "select count(*) from api_key_machines"
    for _ in range(3):
        await areas.keys.create(NewKey(areas.domain, name="new"))
        left.append(await areas.store.read(lambda tx: tx.value(int, sql)))
        left.append("old" in [each.name for each in await listed(areas)])
    assert left == [SLICE + 1, True, 1, True, 0, False]


async def test_the_keys_of_a_deleted_instance_are_deleted(areas: Areas) -> None:
    """The deletion of an instance calls `forget_instance` in the same transaction."""
    machine = await instance(areas)
    _, key = await enrolled(areas, machine)
    _, kept = await areas.keys.create(NewKey(areas.domain))
    await areas.store.write(lambda tx: repo.forget_instance(tx, machine))
    areas.keys.forget()
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.keys.authenticate(key)
    assert len(await listed(areas)) == 1
    await areas.keys.authenticate(kept)


async def test_the_audit_trail_has_each_step_and_no_key(areas: Areas) -> None:
    """The audit trail has the creation, exchange, renewal and revocation. It contains neither a key nor its hash."""
    agent, key = await enrolled(areas, await instance(areas))
    new = new_key()
    await areas.keys.renew(agent, token_hash(new))
    await areas.keys.revoke(areas.domain, agent.token_id)
    rows = await areas.store.read(lambda tx: tx.rows("select action, target, changes from audit_trail order by id"))
    actions = [str(row[0]) for row in rows if str(row[0]).startswith("key.")]
    assert actions == ["key.create", "key.exchange", "key.renew", "key.revoke", "key.revoke"]
    text = json.dumps([list(row) for row in rows])
    assert not [each for each in (key, new, token_hash(key), token_hash(new)) if each in text]


async def test_revoking_a_key_revokes_its_successor(areas: Areas) -> None:
    """If a key has a successor that was made before the revocation, both are revoked, and the list shows both as
    revoked."""
    agent, old = await enrolled(areas, await instance(areas))
    new = new_key()
    successor = await areas.keys.renew(agent, token_hash(new))
    await areas.keys.revoke(areas.domain, agent.token_id)
    for key in (old, new):
        with pytest.raises(Unauthenticated, match="invalid token"):
            await areas.keys.authenticate(key)
    now = areas.clock()
    assert [(each.id, each.status(now)) for each in await listed(areas)][-2:] == [
        (agent.token_id, "revoked"),
        (successor.id, "revoked"),
    ]


async def test_a_revoked_key_stays_in_the_list(areas: Areas) -> None:
    """A revoked key is not deleted when its successor is used at the same time."""
    agent, _ = await enrolled(areas, await instance(areas))
    successor = await areas.keys.renew(agent, token_hash(new_key()))
    await areas.keys.revoke(areas.domain, agent.token_id)
    await areas.store.write(lambda tx: repo.seen(tx, successor, areas.clock()))
    assert agent.token_id in [each.id for each in await listed(areas)]

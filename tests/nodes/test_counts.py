"""Failures and limits that count over all nodes."""

from collections.abc import AsyncIterator

import pytest
import trio

from sallyport.areas.login.login import Reason
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.areas.signin.sessions import Browser
from sallyport.base.errors import TooMany, Unauthenticated
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.login.conftest import Answers, FakeListener
from tests.areas.policy.lockouts.guesses import LOCKED, WRONG, fail, log_in
from tests.nodes.conftest import LOCKOUT as LIMIT
from tests.nodes.conftest import Pair, until
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres


@pytest.fixture
async def nodes(pair: Pair) -> AsyncIterator[tuple[FakeListener, FakeListener]]:
    """Yield two nodes that exchange notices, with a RADIUS client and the user ann."""
    one, two = pair.one, pair.two
    client = await one.client()
    await one.add_user(one.domain, "ann", b"hello")
    await two.configuration.reload()
    async with trio.open_nursery() as nursery:
        for each in (one, two):
            await nursery.start(each.notices.run)
            await nursery.start(each.first.run)
            await nursery.start(each.second.run)
        yield FakeListener(one, client, Answers()), FakeListener(two, two.clients.table.by_id[client.id], Answers())
        nursery.cancel_scope.cancel()


async def sent(areas: Areas, count: int) -> None:
    """Wait until the store has a number of notices."""

    def counted(tx: Tx) -> int:
        return tx.value(int, "select count(*) from notices") or 0

    with trio.fail_after(60):
        while await areas.store.read(counted) < count:
            await trio.sleep(0.01)


async def test_failures_at_two_nodes_lock_a_user(nodes: tuple[FakeListener, FakeListener]) -> None:
    """A user who fails at several nodes is locked out on all of them, with the failures of all counted."""
    one, two = nodes
    assert await fail(one, LIMIT - 1) == [WRONG] * (LIMIT - 1)
    key = (one.areas.domain, "ann")
    with trio.fail_after(30):
        while len(two.areas.lockouts._users._failed.get(key) or ()) < LIMIT - 1:
            await trio.sleep(0.01)
    assert await log_in(two) is WRONG
    assert await log_in(two, "ann", "hello") is LOCKED
    with trio.fail_after(60):
        while await log_in(one, "ann", "hello") is not LOCKED:
            await trio.sleep(0.01)


async def test_the_same_guess_at_two_nodes_counts_once(nodes: tuple[FakeListener, FakeListener]) -> None:
    """A NAS that sends one wrong password to both nodes does not lock the user out."""
    one, two = nodes
    for _ in range(LIMIT):
        assert await log_in(one, "ann", "typing error") is WRONG
        assert await log_in(two, "ann", "typing error") is WRONG
    assert await log_in(one, "ann", "hello") is Reason.NONE


async def test_a_success_resets_the_count_on_all_nodes(nodes: tuple[FakeListener, FakeListener]) -> None:
    """A login that succeeds at one node resets the failures of another one."""
    one, two = nodes
    await fail(one, LIMIT - 1)
    await sent(two.areas, LIMIT - 1)
    with trio.fail_after(60):
        while not len(two.areas.lockouts._users):
            await trio.sleep(0.01)
    assert await log_in(two, "ann", "hello") is Reason.NONE
    await until(lambda: not len(one.areas.lockouts._users))
    assert await log_in(one) is WRONG
    assert await log_in(one, "ann", "hello") is Reason.NONE


async def test_an_admin_unlocks_on_all_nodes(nodes: tuple[FakeListener, FakeListener]) -> None:
    """A user who is unlocked at one node can log in at every node within a second."""
    one, two = nodes
    await fail(one, LIMIT)
    await until(lambda: bool(two.areas.lockouts._users.locked))
    assert await two.areas.lockouts.unlock(one.areas.domain, LockoutKind.USER, "ann")
    await until(lambda: not one.areas.lockouts._users.locked)
    assert await log_in(one, "ann", "hello") is Reason.NONE


async def test_a_node_that_starts_knows_the_failures_before(nodes: tuple[FakeListener, FakeListener]) -> None:
    """The failures of the last minutes count after the start of a node."""
    one, two = nodes
    await fail(one, LIMIT - 1)
    await sent(one.areas, LIMIT - 1)
    late = Areas(two.areas.store, two.areas.clock, lockout_failures=LIMIT, cluster=two.areas.cluster)
    async with trio.open_nursery() as nursery:
        await nursery.start(late.notices.run)
        nursery.cancel_scope.cancel()
    assert len(late.lockouts._users) == 1


async def test_wrong_keys_count_over_all_nodes(nodes: tuple[FakeListener, FakeListener]) -> None:
    """A source that sends wrong API keys to one node has to wait at the other one."""
    one, two = nodes
    source = "198.51.100.7"
    for number in range(30):
        with pytest.raises(Unauthenticated):
            await one.areas.keys.authenticate(f"spk_wrong{number}", source)
    await sent(one.areas, 30)
    with trio.fail_after(60):
        while True:
            try:
                await two.areas.keys.authenticate("spk_wrong", "198.51.100.7")
            except TooMany:
                break
            except Unauthenticated:
                await trio.sleep(0.01)


async def test_failed_sign_ins_count_over_all_nodes(nodes: tuple[FakeListener, FakeListener]) -> None:
    """An address that guesses tokens of the console at one node has to wait at the other one."""
    one, two = nodes
    browser = Browser("198.51.100.8")
    for number in range(10):
        with pytest.raises(Unauthenticated):
            await one.areas.sign_ins.by_token(f"sp_wrong{number}", browser)
    await sent(one.areas, 10)
    with trio.fail_after(60):
        while True:
            try:
                await two.areas.sign_ins.by_token("sp_wrong", browser)
            except TooMany:
                break
            except Unauthenticated:
                await trio.sleep(0.01)


async def test_trials_count_over_all_nodes(nodes: tuple[FakeListener, FakeListener]) -> None:
    """The limit of CheckFirstFactor holds for all nodes together."""
    one, two = nodes
    domain = one.areas.domains.table.by_id[one.areas.domain]
    for _ in range(5):
        one.areas.trials.admit(domain)
    with trio.fail_after(60):
        while True:
            try:
                two.areas.trials.admit(domain)
            except TooMany:
                break
            await trio.sleep(0.1)

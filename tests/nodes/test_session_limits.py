"""A limit of parallel sessions is exact over the nodes of a database."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from threading import Event

import trio

from sallyport.areas.sessions.parallel import Admission, Parallel, admit
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from sallyport.store.model import Engine, Tx
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.limits import limit, login, sends_interims
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
LIMIT, USERS = 3, ("ann", "cy")


async def test_concurrent_logins_at_two_nodes(pair: Pair) -> None:
    """Of the concurrent logins of a user at two nodes, in many transactions, exactly as many as the limit are accepted.
    The nodes see the users in different orders."""
    one, two = pair.one, pair.two
    await one.client(name="nas")
    for user in USERS:
        await one.add_user(one.domain, user, b"hello")
    await limit(one, LIMIT, users=[*USERS])
    await two.configuration.reload()
    async with trio.open_nursery() as nursery:
        wires = [Wire(each, nursery) for each in (one, two)]
        await sends_interims(wires[0])
        answers = Counter[int]()
        numbers = count()
        for _ in range(4):
            for wire, users in zip(wires, (USERS, USERS[::-1]), strict=True):
                wire.put(*(login(next(numbers), user) for _ in range(5) for user in users))
        for wire in wires:
            for _ in range(4 * 5 * len(USERS)):
                answers[(await wire.take())[0][0]] += 1
        nursery.cancel_scope.cancel()
    assert answers[ACCESS_ACCEPT] == LIMIT * len(USERS)
    assert answers[ACCESS_REJECT] == 80 - LIMIT * len(USERS)


async def test_a_transaction_waits_for_the_other_node(pair: Pair) -> None:
    """A node counts only after the other node's transaction with the same user has ended."""
    one, two = pair.one, pair.two
    await one.client(name="nas")
    async with trio.open_nursery() as nursery:
        await sends_interims(Wire(one, nursery))
        nursery.cancel_scope.cancel()
    device = await one.store.read(lambda tx: tx.value(int, "select id from devices")) or 0
    asked = Admission(one.domain, "ann", [(one.domain, "ann")], device, "", 2, False, 0, one.clock())
    assert not (await one.store.write(lambda tx: admit(tx, asked))).is_over  # its row exists from now on
    found, counted, other = list[Parallel](), Event(), Event()

    def first(tx: Tx) -> None:
        found.append(admit(tx, asked))
        counted.set()
        other.wait(0.5)

    def second(tx: Tx) -> None:
        counted.wait(10)
        found.append(admit(tx, asked))
        other.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(submitted, one.store, first)
            nursery.start_soon(submitted, two.store, second)
    assert [each.is_over for each in found] == [False, True]


async def submitted(store: Engine, work: Callable[[Tx], None]) -> None:
    """Write in the journal's lane."""
    finished = trio.Event()

    def done(_result: None, error: BaseException | None) -> None:
        assert error is None
        finished.set()

    store.submit(work, done)
    await finished.wait()

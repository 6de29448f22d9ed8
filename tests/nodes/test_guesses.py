"""The limits for guesses over two nodes that have not heard of each other's failures yet."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from itertools import cycle
from pathlib import Path

import psycopg
import pytest
import trio

from sallyport.areas.login.login import Answer, Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.areas.signin.area import FAILED_SIGN_INS
from sallyport.areas.signin.sessions import Browser
from sallyport.areas.signin.sign_ins import SignIns
from sallyport.areas.users.totp import MAX_WRONG_CODES, OneTimeSeeds
from sallyport.base.errors import NotFound, TooMany, Unauthenticated
from sallyport.radius.attributes import STATE, pull_attributes
from tests.areas.login.conftest import Answers, FakeListener
from tests.areas.login.second.scripted import NAME, Script, provider
from tests.areas.policy.lockouts.guesses import LOCKED, log_in, stored, trail
from tests.areas.users.test_totp import wrong
from tests.nodes.conftest import LOCKOUT, Pair
from tests.packets import attributes, pap
from tests.peers.postgres import database_in, needs_postgres
from tests.waiting import until

pytestmark = needs_postgres
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
RIGHT = "hello123456"
Nodes = tuple[FakeListener, FakeListener]


@pytest.fixture
def script() -> Script:
    """Return the script of the provider of both nodes."""
    return Script()


@pytest.fixture
async def nodes(pair: Pair, script: Script) -> AsyncIterator[Nodes]:
    """Yield two nodes that ask the user ann for codes. They exchange no notices."""
    one, two = pair.one, pair.two
    two.kinds[NAME] = provider(script)
    await script.attach(one)
    await one.add_user(one.domain, "ann", b"hello")
    client = await one.client()
    await two.configuration.reload()
    async with trio.open_nursery() as nursery:
        for each in (one, two):
            await nursery.start(each.second.run)
        yield FakeListener(one, client, Answers()), FakeListener(two, two.clients.table.by_id[client.id], Answers())
        nursery.cancel_scope.cancel()


async def guess_codes(nodes: Nodes, times: int) -> list[Reason]:
    """Log in with wrong codes, at the two nodes in turn. Return the reason of each login."""
    return [await log_in(node, "ann", f"hello{number:06}") for node, number in zip(cycle(nodes), range(times))]


async def challenged(node: FakeListener, password: str = "hello", body: bytes = b"") -> bytes:  # noqa: S107
    """Log in, and return the State of the challenge as an attribute."""
    login = node.login(pap("ann", password, body))
    login.answer = Answer(await node.decide(login))
    node.areas.journal.add(login)
    node.areas.journal.flush()
    await node.areas.journal.drained()
    return attributes(STATE=dict(pull_attributes(memoryview(login.attributes)))[STATE])


@pytest.mark.parametrize("last", [0, 1], ids=["first node", "second node"])
async def test_a_code_beyond_the_limit_is_not_checked(nodes: Nodes, script: Script, last: int) -> None:
    """Once both nodes together have checked as many wrong codes as the limit allows, neither checks another one. The
    next code is refused although it is right, and locks the user out."""
    assert await guess_codes(nodes, LOCKOUT) == [Reason.WRONG_CODE] * LOCKOUT
    assert await log_in(nodes[last], "ann", RIGHT) is LOCKED
    assert len(script.verified) == LOCKOUT
    assert await stored(nodes[0].areas) == [("user", "ann", LOCKOUT)]
    assert [each.action for each in await trail(nodes[0].areas)] == ["user.locked"]


async def test_codes_that_are_being_checked_count(nodes: Nodes, script: Script) -> None:
    """A code is refused at one node while the other node still checks the codes that reach the limit."""
    await guess_codes(nodes, LOCKOUT - 2)
    script.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(log_in, nodes[0], "ann", f"hello99999{number}")
        await until(lambda: len(script.verified) == LOCKOUT)
        assert await log_in(nodes[1], "ann", RIGHT) is LOCKED
        script.gate.set()
    assert len(script.verified) == LOCKOUT


async def test_codes_of_challenges_count(nodes: Nodes, script: Script) -> None:
    """The answers to challenges count over both nodes and over all challenges of the user."""
    script.begins = Outcome.CODE
    one, two = nodes
    first = await challenged(one)
    for node in (one, two):
        first = await challenged(node, "000000", first)
    assert await log_in(two, "ann", "000000", first) is Reason.WRONG_CODE
    second = await challenged(two)
    for node in (one, two):
        second = await challenged(node, "000000", second)
    assert await log_in(one, "ann", "123456", second) is LOCKED
    assert len(script.verified) == LOCKOUT


async def test_an_approval_resets_the_codes_of_all_nodes(nodes: Nodes, script: Script) -> None:
    """Wrong codes before a right one do not count any more, at whichever node they were."""
    script.right = {"123456", "654321"}
    await guess_codes(nodes, LOCKOUT - 1)
    assert await log_in(nodes[1], "ann", RIGHT) is Reason.NONE
    await guess_codes(nodes, LOCKOUT - 1)
    assert await log_in(nodes[1], "ann", "hello654321") is Reason.NONE


async def test_an_admin_resets_the_codes_of_all_nodes(nodes: Nodes) -> None:
    """A user whose codes have reached the limit over two nodes can log in after the user was unlocked."""
    await guess_codes(nodes, LOCKOUT)
    await nodes[1].areas.lockouts.unlock(nodes[0].areas.domain, LockoutKind.USER, "Ann")
    assert await log_in(nodes[1], "ann", RIGHT) is Reason.NONE


async def sign_in(sign_ins: SignIns, numbers: Iterable[int], *, source: str = "", name: str = "") -> list[str]:
    """Sign in with wrong passwords, with one address or one name, and with a new one of the other. Return whether each
    attempt was checked."""
    results = []
    for number in numbers:
        try:
            await sign_ins.by_password(
                name or f"root{number}", "wrong", "123456", Browser(source or f"192.0.2.{number}")
            )
        except (Unauthenticated, TooMany) as error:
            results.append("checked" if isinstance(error, Unauthenticated) else "refused")
    return results


@pytest.mark.parametrize("same", [{"name": "root"}, {"source": "2001:db8::7"}], ids=["name", "address"])
@pytest.mark.parametrize("last", [0, 1], ids=["first node", "second node"])
async def test_a_sign_in_beyond_the_limit_is_not_checked(pair: Pair, last: int, same: dict[str, str]) -> None:
    """The sign-ins of one name, or of one address, are ten over both nodes. Neither node checks another one."""
    nodes = [each.sign_ins for each in (pair.one, pair.two)]
    for number in range(FAILED_SIGN_INS):
        assert await sign_in(nodes[number % 2], [number], **same) == ["checked"]
    assert await sign_in(nodes[last], [99], **same) == ["refused"]
    pair.one.clock.pass_by(10.0)
    assert await sign_in(nodes[last], [100, 101], **same) == ["checked", "refused"]


async def test_sign_ins_at_the_same_time(pair: Pair) -> None:
    """Sign-ins with one name that reach both nodes at the same time are checked ten times."""
    results = list[str]()

    async def attempt(sign_ins: SignIns, number: int) -> None:
        results.extend(await sign_in(sign_ins, [number], name="root"))

    async with trio.open_nursery() as nursery:
        for number in range(FAILED_SIGN_INS):
            for place, each in enumerate((pair.one, pair.two)):
                nursery.start_soon(attempt, each.sign_ins, 2 * number + place)
    assert Counter(results) == {"checked": FAILED_SIGN_INS, "refused": FAILED_SIGN_INS}


async def test_the_last_code_of_an_enrolment_at_two_nodes(pair: Pair, tmp_path: Path) -> None:
    """If two nodes get a code at the same time and one attempt is left, only one of them checks its code."""
    await pair.one.add_user(pair.one.domain, "ann", b"hello")
    made, link = await pair.one.seeds.enrol(pair.one.domain, "ann")
    code = wrong(made.seed, pair.one)
    for _ in range(MAX_WRONG_CODES - 1):
        await pair.one.seeds.confirm_link(link, code)
    results = list[str]()

    async def confirm(seeds: OneTimeSeeds) -> None:
        try:
            results.append(f"{(await seeds.confirm_link(link, code)).tries_left} left")
        except NotFound:
            results.append("refused")

    with psycopg.connect(database_in(tmp_path)) as third:
        third.execute("select 1 from totp_enrolments for update")
        async with trio.open_nursery() as nursery:
            for each in (pair.one, pair.two):
                nursery.start_soon(confirm, each.seeds)
            await until(lambda: _waiting(third) == 2)
            third.rollback()
    assert sorted(results) == ["0 left", "refused"]


def _waiting(connection: psycopg.Connection[tuple[int]]) -> int:
    """Return how many sessions wait for a lock. PostgreSQL keeps the first view of its sessions until the end of a
    transaction, unless it is cleared."""
    connection.execute("select pg_stat_clear_snapshot()")
    row = connection.execute(WAITING).fetchone()
    return 0 if row is None else row[0]

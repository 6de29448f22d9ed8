"""Challenges over two nodes: a State is valid at any node, once."""

import trio

from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.listen.second import (
    a_login,
    answer,
    challenged,
    events,
    exchange,
    joined,
    typed,
)
from tests.nodes.pair import Pair, pair
from tests.peers.postgres import needs_postgres
from tests.waiting import until

__all__ = ["pair"]

pytestmark = needs_postgres
OVER = "the challenge is unknown, over or another's"


async def test_a_challenge_is_answered_at_another_node(pair: Pair) -> None:
    """A code with the State of another node is accepted, although the clocks differ by two minutes. The State is then
    over at every node."""
    pair.script.begins = Outcome.CODE
    state = await challenged(pair.one)
    assert (await exchange(pair.two, typed("123456", state)))[0] == ACCESS_ACCEPT
    pair.script.right.add("123456")
    for wire in (pair.one, pair.two):
        assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(pair.one.areas)].count(OVER) == 2
    assert len(pair.script.verified) == 1


async def test_a_state_expires_at_another_node(pair: Pair) -> None:
    """At another node a State expires by the clock of the database."""
    pair.script.begins = Outcome.CODE
    state = await challenged(pair.one)
    await pair.one.areas.store.write(lambda tx: tx.execute("update challenges set expires_at = now_us()"))
    assert (await exchange(pair.two, typed("123456", state)))[0] == ACCESS_REJECT
    assert pair.script.verified == []


async def test_a_state_at_both_nodes(pair: Pair) -> None:
    """A code that reaches both nodes is checked once, and the newest request gets the one Accept."""
    pair.script.begins, pair.script.gate = Outcome.CODE, trio.Event()
    state = await challenged(pair.one)
    pair.one.put(typed("123456", state))
    await until(lambda: len(pair.script.verified) == 1)
    newest = typed("123456", state)
    pair.two.put(newest)
    await joined(pair.two, 1)
    pair.script.gate.set()
    assert (await answer(pair.two, newest))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert (len(pair.script.verified), await pair.accepts()) == (1, 1)


async def test_another_code_for_the_same_state(pair: Pair) -> None:
    """While a node checks a code, another code for the same State is refused at the other node."""
    pair.script.begins, pair.script.gate = Outcome.CODE, trio.Event()
    state = await challenged(pair.one)
    right = typed("123456", state)
    pair.one.put(right)
    await until(lambda: len(pair.script.verified) == 1)
    assert (await exchange(pair.two, typed("12345678", state)))[0] == ACCESS_REJECT
    pair.script.gate.set()
    assert (await answer(pair.one, right))[0] == ACCESS_ACCEPT
    assert len(pair.script.verified) == 1


async def test_an_unsigned_copy(pair: Pair) -> None:
    """An unsigned copy of a signed answer to a challenge, which anybody may have sent, takes no answer away."""
    pair.one.areas.patience = 0.05
    state = await challenged(pair.one)
    pair.one.areas.patience = 60
    signed = typed("", state)
    pair.one.put(signed)
    await joined(pair.one, 1)
    # The request waits in the client of another node, which has not learned that the NAS signs.
    for each in (pair.one, pair.two):
        await each.areas.configuration.reload()
    client = pair.two.areas.client_named("nas")
    await pair.two.areas.clients.update(pair.two.areas.tenant, client.id, {"require_message_authenticator": "no"})
    assert (await exchange(pair.two, typed("", state, signed=False)))[0] == ACCESS_REJECT
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.one, signed))[0] == ACCESS_ACCEPT


async def test_three_wrong_codes_at_two_nodes(pair: Pair) -> None:
    """Wrong codes count over all nodes: the third is a reject, and no State is valid afterwards."""
    pair.script.begins = Outcome.CODE
    states = [await challenged(pair.one)]
    for wire in (pair.one, pair.two):
        code, first = await exchange(wire, typed("000000", states[-1]))
        assert code == ACCESS_CHALLENGE
        states.append(first[STATE])
    assert (await exchange(pair.one, typed("000000", states[-1])))[0] == ACCESS_REJECT
    for state in states:
        for wire in (pair.one, pair.two):
            assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_REJECT
    assert len(pair.script.verified) == 3


async def test_a_code_behind_the_password(pair: Pair) -> None:
    """A code behind the password that reaches both nodes is checked once."""
    pair.script.gate = trio.Event()
    pair.one.put(a_login(password="hello123456"))
    await until(lambda: len(pair.script.verified) == 1)
    newest = a_login(password="hello123456")
    pair.two.put(newest)
    await joined(pair.two, 1)
    pair.script.gate.set()
    assert (await answer(pair.two, newest))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert (pair.script.started, len(pair.script.verified)) == ([], 1)


async def test_a_push_that_continues_by_a_challenge(pair: Pair) -> None:
    """A device that cannot wait gets a challenge from one node, answers it at another, and then at the first one again:
    one prompt, one Accept."""
    pair.one.areas.patience = pair.two.areas.patience = 0.05
    state = await challenged(pair.one)
    for wire in (pair.two, pair.one):
        code, first = await exchange(wire, typed("", state))
        assert code == ACCESS_CHALLENGE
        state = first[STATE]
    pair.script.answer(0, Outcome.APPROVED)
    await until(pair.is_approved)
    assert (await exchange(pair.two, typed("", state)))[0] == ACCESS_ACCEPT
    assert (await exchange(pair.one, typed("", state)))[0] == ACCESS_REJECT
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)

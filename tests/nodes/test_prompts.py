"""Second factors over two nodes: a NAS that fails over joins the prompt."""

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from sallyport.areas.domains.domain import Fallback
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.login.second import repo
from sallyport.areas.login.second.prompts import A_MINUTE, OPEN
from sallyport.areas.login.second.repo import Prompt
from sallyport.areas.mfa.circuit import FAILURES
from sallyport.areas.mfa.provider import Outcome, ProviderError, Strength
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import StoreError
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from sallyport.store.model import Engine, Tx
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
    OTHER,
    a_login,
    answer,
    challenged,
    events,
    exchange,
    joined,
    prompted,
    typed,
)
from tests.areas.login.second.scripted import Script, attached, fall_back_to, provider
from tests.explore.store import name_of
from tests.nodes.pair import Pair, pair
from tests.packets import attributes
from tests.peers.postgres import needs_postgres
from tests.waiting import until

__all__ = ["pair"]

pytestmark = needs_postgres


# --- a push -------------------------------------------------------------------------------------------------------


async def test_a_nas_that_fails_over_joins(pair: Pair) -> None:
    """A request at the second node joins the prompt of the first: one prompt, and one Accept from the second node. The
    first request gets no answer."""
    pair.one.put(a_login())
    await prompted(pair.script)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert len(pair.script.started) == len(pair.script.polled) == 1
    assert (pair.one.dropped("other_node"), pair.one.auth.in_flight) == (1, 0)
    assert [each.applied_decision for each in await events(pair.one.areas)] == ["accept"]


async def test_a_prompt_of_the_provider_of_a_rule(pair: Pair, keys: Script) -> None:
    """The provider that a rule names has one prompt over both nodes. The strength of its answer reaches the node that
    has joined."""
    first, second = a_login(), a_login()
    pair.one.put(first)
    await prompted(keys)
    pair.two.put(second)
    await joined_at(pair.two, keys)
    keys.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, second))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert (len(keys.started), pair.script.started) == (1, [])


async def test_a_challenge_of_the_provider_of_a_rule(pair: Pair, keys: Script) -> None:
    """The other node checks the code by the provider that has asked for it. An answer that is too weak is refused."""
    keys.begins = Outcome.CODE
    state = await challenged(pair.one)
    assert (await exchange(pair.two, typed("123456", state)))[0] == ACCESS_ACCEPT
    state = await challenged(pair.one)
    keys.strength, keys.right = Strength.ANY, {"123456"}
    assert (await exchange(pair.two, typed("123456", state)))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(pair.one.areas)][-1] == "not strong enough"
    assert (len(keys.verified), pair.script.started) == (2, [])


@pytest.fixture
async def keys(pair: Pair) -> Script:
    """Return the script of a provider that a rule names, with the strength that the rule demands."""
    keys = Script(name="keys", strength=Strength.TWO_CHANNELS, strongest=Strength.TWO_CHANNELS)
    one, two = pair.one.areas, pair.two.areas
    two.kinds["keys"] = provider(keys)
    await keys.attach_beside(one)
    fields = {"name": "admins", "action": "mfa_required", "provider": "keys", "strength": "two_channels"}
    await one.rules.add(one.domain, RuleFields.model_validate(fields))
    await two.configuration.reload()
    return keys


async def joined_at(wire: Wire, script: Script) -> None:
    """Wait until a request has joined at a node."""
    await until(lambda: wire.areas.sample("sallyport_mfa_joined_retransmits_total", provider=script.name) >= 1)


async def test_a_nas_that_comes_back(pair: Pair) -> None:
    """The answer comes from the node with the newest request, also if the NAS has been at another one meanwhile."""
    pair.one.put(a_login())
    await prompted(pair.script)
    pair.two.put(a_login())
    await joined(pair.two, 1)
    await until(lambda: pair.one.dropped("other_node") == 1)
    login = a_login()
    pair.one.put(login)
    await joined(pair.one, 1)
    await until(lambda: pair.two.dropped("other_node") == 1)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.one, login))[0] == ACCESS_ACCEPT
    await pair.two.silence()
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_the_same_packet_at_both_nodes(pair: Pair) -> None:
    """A NAS that repeats one packet at both nodes in turn gets one Accept, from the node that it asked last."""
    login = a_login()
    for number, wire in enumerate((pair.one, pair.two, pair.one, pair.two)):
        wire.put(login)
        await prompted(pair.script)
        other = pair.one if wire is pair.two else pair.two
        await until(lambda other=other, number=number: other.dropped("other_node") == (number + 1) // 2)  # type: ignore[misc]
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_a_late_retransmission_prompts_nobody(pair: Pair) -> None:
    """A NAS sends a packet to the first node again, after the second node has answered the login. The first node gives
    no answer, and the user gets no second prompt. This does not count as prompts of the user, so that it may happen
    more often than a user may have prompts."""
    late, newest = a_login(), a_login()
    pair.one.put(late)
    await prompted(pair.script)
    pair.two.put(newest)
    await until(lambda: pair.one.dropped("other_node") == 1)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, newest))[0] == ACCESS_ACCEPT
    for number in range(2, A_MINUTE + 4):
        pair.one.put(late)
        await until(lambda number=number: pair.one.dropped("other_node") == number)  # type: ignore[misc]
    await pair.one.silence()
    assert (len(pair.script.started), [each.applied_decision for each in await events(pair.one.areas)]) == (
        1,
        ["accept"],
    )


async def test_a_late_answer_to_a_challenge_is_dropped(pair: Pair) -> None:
    """A NAS sends the answer to a challenge to the first node again, after the second node has accepted it. The first
    node does not refuse the user."""
    pair.script.begins, pair.script.gate = Outcome.CODE, trio.Event()
    state = await challenged(pair.one)
    late, newest = typed("123456", state), typed("123456", state)
    pair.one.put(late)
    await until(lambda: len(pair.script.verified) == 1)
    pair.two.put(newest)
    await until(lambda: pair.one.dropped("other_node") == 1)
    pair.script.gate.set()
    assert (await answer(pair.two, newest))[0] == ACCESS_ACCEPT
    pair.one.put(late)
    await until(lambda: pair.one.dropped("other_node") == 2)
    await pair.one.silence()
    assert (len(pair.script.verified), await pair.accepts()) == (1, 1)


async def test_two_nodes_ask_at_once(pair: Pair) -> None:
    """Requests of one login that reach both nodes in the same moment are one prompt and one Accept."""
    first, second = a_login(), a_login()
    pair.one.put(first)
    pair.two.put(second)
    await prompted(pair.script)
    await until(lambda: pair.one.dropped("other_node") + pair.two.dropped("other_node") == 1)
    pair.script.answer(0, Outcome.APPROVED)
    wire, login = (pair.one, first) if pair.two.dropped("other_node") else (pair.two, second)
    assert (await answer(wire, login))[0] == ACCESS_ACCEPT
    for each in (pair.one, pair.two):
        await each.silence()
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_a_new_login_gets_a_prompt_of_its_own(pair: Pair) -> None:
    """Once the Accept has left, the next login of the same session is another prompt, at either node."""
    for number, wire in enumerate((pair.one, pair.two, pair.one)):
        login = a_login()
        wire.put(login)
        await prompted(pair.script, number + 1)
        pair.script.answer(number, Outcome.APPROVED)
        assert (await answer(wire, login))[0] == ACCESS_ACCEPT
        await pair.let_go()
    assert len({each.challenge_id for each in pair.script.started}) == 3


async def test_a_request_that_crosses_the_accept(pair: Pair) -> None:
    """A NAS asks the next node while the first one sends the Accept. The next node gives no answer, and the user gets
    no second prompt, however often the NAS asks. If the Accept was lost, a request some seconds later gets a prompt."""
    login = a_login()
    pair.one.put(login)
    await prompted(pair.script)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.one, login))[0] == ACCESS_ACCEPT
    crossing = a_login()
    for number in range(1, A_MINUTE + 2):
        pair.two.put(crossing)
        await until(lambda number=number: pair.two.dropped("other_node") == number)  # type: ignore[misc]
    pair.one.put(a_login())
    await until(lambda: pair.one.dropped("other_node") == 1)
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)
    await pair.let_go()
    pair.two.put(crossing)
    await prompted(pair.script, 2)
    pair.script.answer(1, Outcome.APPROVED)
    assert (await answer(pair.two, crossing))[0] == ACCESS_ACCEPT


async def test_a_login_after_a_denial(pair: Pair) -> None:
    """After a prompt was refused by mistake, its user may try again at once, at the other node."""
    login = a_login()
    pair.one.put(login)
    await prompted(pair.script)
    pair.script.answer(0, Outcome.DENIED)
    assert (await answer(pair.one, login))[0] == ACCESS_REJECT
    again = a_login()
    pair.two.put(again)
    await prompted(pair.script, 2)
    pair.script.answer(1, Outcome.APPROVED)
    assert (await answer(pair.two, again))[0] == ACCESS_ACCEPT


async def test_another_node_takes_over(pair: Pair) -> None:
    """If the owner of a prompt dies, the node where the login waits polls the same handle: one prompt, one Accept. The
    owner gives nothing if it comes back."""
    pair.one.put(a_login())
    await prompted(pair.script)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    await pair.kill("one")
    await until(lambda: len(pair.script.polled) == 2)
    assert len(set(pair.script.polled)) == 1
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    await pair.one.silence()
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


@pytest.mark.parametrize("fallback", Fallback)
async def test_a_node_stops(pair: Pair, fallback: Fallback) -> None:
    """A node that stops gives its prompt up at once. The fallback decides nothing: the request gets no answer. When the
    NAS asks the other node, that node polls the same handle, and sends the one Accept."""
    await fall_back_to(pair.one.areas, fallback)
    await pair.two.areas.configuration.reload()
    pair.one.put(a_login())
    await until(lambda: len(pair.script.polled) == 1)
    await pair.one.areas.second.stop_waiting()
    await until(lambda: pair.one.dropped("other_node") == 1)
    login = a_login()
    pair.two.put(login)
    await until(lambda: len(pair.script.polled) == 2)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    pair.one.put(a_login())  # a login whose first factor has just ended
    await until(lambda: pair.one.dropped("other_node") == 2)
    await pair.one.silence()
    assert (len(pair.script.started), len(set(pair.script.polled)), pair.script.cancelled) == (1, 1, [])
    assert [each.applied_decision for each in await events(pair.one.areas)] == ["accept"]


async def test_a_node_stops_while_the_login_waits_at_the_other(pair: Pair) -> None:
    """If the owner of a prompt stops, the node where the login waits takes over within about a second."""
    pair.one.put(a_login())
    await until(lambda: len(pair.script.polled) == 1)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    await pair.one.areas.second.stop_waiting()
    await until(lambda: len(pair.script.polled) == 2)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_a_node_stops_during_a_challenge(pair: Pair) -> None:
    """A device that answers challenges gets one when its node stops, and the other node continues the same prompt."""
    pair.one.areas.patience = 0.05
    state = await challenged(pair.one)
    pair.one.areas.patience = 60
    pressed = typed("", state)
    pair.one.put(pressed)
    await joined(pair.one, 1)
    await pair.one.areas.second.stop_waiting()
    code, first = await answer(pair.one, pressed)
    assert code == ACCESS_CHALLENGE
    pair.script.answer(0, Outcome.APPROVED)
    assert (await exchange(pair.two, typed("", first[STATE])))[0] == ACCESS_ACCEPT
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_a_handle_that_was_not_stored(pair: Pair) -> None:
    """If the owner dies before it has a handle, another node asks again with the same challenge id."""
    pair.script.slow = trio.Event()
    pair.one.put(a_login())
    await prompted(pair.script)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    await pair.kill("one")
    await until(lambda: len(pair.script.started) == 2)
    assert len({each.challenge_id for each in pair.script.started}) == 1
    pair.script.slow.set()
    pair.script.answer(1, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    await pair.one.silence()


async def test_a_failure_of_the_owner(pair: Pair) -> None:
    """If the owner cannot ask the provider, the login at the other node ends at once too."""
    pair.script.slow = trio.Event()
    pair.script.begins = Outcome.WRONG_CODE  # makes no sense
    pair.one.put(a_login())
    await prompted(pair.script)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    pair.script.slow.set()
    assert (await answer(pair.two, login))[0] == ACCESS_REJECT
    assert (await events(pair.two.areas))[-1].reason == "provider unreachable"
    assert len(pair.script.started) == 1


@pytest.mark.parametrize("function", ["claim", "answered"])
async def test_the_result_of_a_commit_is_lost(pair: Pair, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """The node that has sent a prompt, or was about to, gets no result of its commit, and drops the request. The node
    where the next request waits takes the prompt over, although the other node is alive."""
    write, lost = pair.one.areas.store.write_aside, list[str]()

    async def lose_one(work: Callable[[Tx], object]) -> object:
        result = await write(work)
        if function in name_of(work) and not lost:
            lost.append(function)
            raise StoreError("the connection has ended")
        return result

    await pair.two.areas.store.write(lambda tx: tx.execute("update nodes set seen_at = seen_at + 3600000000"))
    monkeypatch.setattr(pair.one.areas.store, "write_aside", lose_one)
    pair.one.put(a_login())
    await until(lambda: bool(lost))
    login = a_login()
    pair.two.put(login)
    await until(lambda: len(pair.script.polled) == 1)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, login))[0] == ACCESS_ACCEPT
    assert (len(pair.script.started), await pair.accepts()) == (1, 1)


async def test_a_circuit_closes_while_the_failure_is_stored(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event says that the circuit was open when the login was refused."""
    second = pair.one.areas.second
    circuit, keep = attached(pair.one.areas).provider, second._calls._keep
    circuit._failures, circuit._closed_until = FAILURES, math.inf

    async def close_first(*given: Any) -> None:
        circuit._succeed()
        await keep(*given)

    monkeypatch.setattr(second._calls, "_keep", close_first)
    assert (await exchange(pair.one, a_login()))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(pair.one.areas)] == ["provider unreachable, circuit open"]


async def test_a_rate_limit_of_the_owner(pair: Pair) -> None:
    """A rate limit that the owner meets after the prompt refuses the login at the other node, whatever the fallback
    is."""
    await fall_back_to(pair.one.areas, Fallback.ALLOW)
    await pair.two.areas.configuration.reload()

    def busy() -> None:
        raise ProviderError("busy", limited=True)

    pair.script.slow, pair.script.busy_polls = trio.Event(), busy
    pair.one.put(a_login())
    await prompted(pair.script)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    pair.script.slow.set()
    assert (await answer(pair.two, login))[0] == ACCESS_REJECT
    assert (await events(pair.two.areas))[-1].reason == "second factor not answered in time"


async def test_prompts_of_a_user_count_over_all_nodes(pair: Pair) -> None:
    """A user has at most two open prompts at all nodes together."""
    logins = [a_login(attributes(CALLING_STATION_ID=b"02-00-00-00-00-0%d" % number)) for number in range(OPEN)]
    for number, login in enumerate(logins):
        (pair.two if number else pair.one).put(login)
        await prompted(pair.script, number + 1)
    last = a_login(attributes(CALLING_STATION_ID=b"02-00-00-00-00-09"))
    assert (await exchange(pair.two, last))[0] == ACCESS_REJECT
    assert (await events(pair.two.areas))[-1].reason == "too many prompts"
    pair.two.put(logins[0], source=OTHER)  # it joins
    await joined(pair.two, 1)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.two, logins[0], OTHER))[0] == ACCESS_ACCEPT
    assert len(pair.script.started) == OPEN


async def denied(pair: Pair) -> None:
    """Let ann say on a page of the second node that a login is not hers."""
    await pair.two.areas.app.factors.denials.deny(Denial(pair.one.areas.domain, "Ann", DeniedAt.PAGE))


async def test_a_denial_at_another_node_wins_over_a_later_approval(pair: Pair) -> None:
    """The store has the denial, so the node that asks the provider cannot store the approval, even if no notice has
    reached it yet. The login is rejected, and no node sends another prompt for ten minutes."""
    login = a_login()
    pair.one.put(login)
    await prompted(pair.script)
    await denied(pair)
    pair.script.answer(0, Outcome.APPROVED)
    assert (await answer(pair.one, login))[0] == ACCESS_REJECT
    for wire in (pair.one, pair.two):
        other = a_login(attributes(CALLING_STATION_ID=b"02-00-00-00-00-09"))
        assert (await exchange(wire, other))[0] == ACCESS_REJECT
    reasons = [each.reason for each in await events(pair.one.areas)]
    assert reasons == ["not me", "too many prompts", "too many prompts"]
    assert len(pair.script.started) == 1


async def test_a_denial_ends_the_waiting_logins_of_all_nodes(pair: Pair) -> None:
    """A notice ends the login that waits at the other node, before the user has answered its prompt. The prompt is
    withdrawn."""
    async with trio.open_nursery() as nursery:
        for each in (pair.one, pair.two):
            await nursery.start(each.areas.notices.run)
        login = a_login()
        pair.one.put(login)
        await prompted(pair.script)
        await until(lambda: len(pair.script.polled) == 1)
        await denied(pair)
        assert (await answer(pair.one, login))[0] == ACCESS_REJECT
        await until(lambda: pair.script.cancelled == [pair.script.started[0].challenge_id])
        nursery.cancel_scope.cancel()
    assert [each.reason for each in await events(pair.one.areas)] == ["not me"]


async def test_a_challenge_of_another_node_is_denied(pair: Pair) -> None:
    """The device may bring its answer to any node: it is refused."""
    pair.script.begins = Outcome.CODE
    first, second = [await challenged(pair.one) for _ in range(2)]
    await denied(pair)
    assert (await exchange(pair.one, typed("123456", first)))[0] == ACCESS_REJECT
    assert (await exchange(pair.two, typed("123456", second)))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(pair.one.areas)][-2:] == ["not me", "not me"]
    assert pair.script.verified == []


async def test_an_approval_that_no_node_has_used_is_denied(pair: Pair) -> None:
    """The approval is in the store, and the device has not come back for it yet. The denial wins."""
    pair.one.areas.patience = 0.02
    state = await challenged(pair.one)
    pair.script.answer(0, Outcome.APPROVED)
    await until_approved(pair)
    await denied(pair)
    assert (await exchange(pair.one, typed("", state)))[0] == ACCESS_REJECT
    assert await pair.accepts() == 0


async def until_approved(pair: Pair) -> None:
    """Wait until the store has an approval."""
    with trio.fail_after(60):
        while not await pair.is_approved():
            await trio.sleep(0.001)


async def test_prompts_without_an_answer_count_over_all_nodes(pair: Pair) -> None:
    """A prompt of each node that has expired at the provider begins a pause at both."""
    for number, wire in enumerate((pair.one, pair.two)):
        login = a_login(attributes(CALLING_STATION_ID=b"02-00-00-00-00-0%d" % number))
        wire.put(login)
        await prompted(pair.script, number + 1)
        pair.script.answer(number, Outcome.UNANSWERED)
        assert (await answer(wire, login))[0] == ACCESS_REJECT
    assert (await exchange(pair.one, a_login()))[0] == ACCESS_REJECT
    assert "too many prompts" in [each.reason for each in await events(pair.one.areas)]
    assert len(pair.script.started) == 2


async def test_a_prompt_expires_while_its_login_waits_at_the_other_node(pair: Pair) -> None:
    """The node where the login waits sends the Reject, although the other node has asked the provider. The user is not
    prompted again."""
    pair.one.put(a_login())
    await until(lambda: len(pair.script.polled) == 1)
    login = a_login()
    pair.two.put(login)
    await joined(pair.two, 1)
    _expire(pair.two)
    assert (await answer(pair.two, login))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(pair.two.areas)] == ["second factor not answered in time"]
    await pair.one.silence()
    assert len(pair.script.started) == 1


@pytest.mark.parametrize("fallback", Fallback)
async def test_a_prompt_that_the_other_node_has_not_sent_expires(pair: Pair, fallback: Fallback) -> None:
    """If no node has asked the provider in time, the login gets no answer, whatever the fallback is."""
    await fall_back_to(pair.one.areas, fallback)
    await pair.two.areas.configuration.reload()
    pair.script.slow = trio.Event()
    pair.one.put(a_login())
    await prompted(pair.script)
    pair.two.put(a_login())
    await joined(pair.two, 1)
    _expire(pair.two)
    await until(lambda: pair.two.dropped("overload") == 1)
    await pair.two.silence()


def _expire(wire: Wire) -> None:
    """End the time of the only login that waits at a node."""
    (conversation,) = wire.areas.second._running
    assert conversation.scope is not None
    conversation.scope.deadline = trio.current_time()


async def test_two_prompts_of_a_user_begin_at_once(pair: Pair) -> None:
    """A node that begins a prompt waits while another node begins one for the same user, and then counts it. A prompt
    of another user does not wait."""
    stores = pair.one.areas.store, pair.two.areas.store
    counted, release = threading.Event(), threading.Event()
    for number in range(OPEN - 1):
        new = a_prompt(str(number))
        assert await stores[0].write_aside(lambda tx, new=new: repo.claim(tx, new, "ann")) is new  # type: ignore[misc]
    claimed: dict[str, bool] = {}

    def first(tx: Tx) -> Prompt | None:
        found = repo.claim(tx, a_prompt("first"), "ann")
        counted.set()
        assert release.wait(10)
        return found

    async def claim(store: Engine, name: str, work: Callable[[Tx], Prompt | None]) -> None:
        found = await store.write_aside(work)
        claimed[name] = found is not None and found.id == name

    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim, stores[0], "first", first)
        await trio.to_thread.run_sync(counted.wait)
        await claim(stores[1], "of ben", lambda tx: repo.claim(tx, a_prompt("of ben"), "ben"))
        nursery.start_soon(claim, stores[1], "second", lambda tx: repo.claim(tx, a_prompt("second"), "ann"))
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        await until(lambda: _equals(stores[1], waiting, 1))
        assert claimed == {"of ben": True}
        release.set()
    assert claimed == {"of ben": True, "first": True, "second": False}


async def test_a_prompt_keeps_the_strength_of_its_answer(pair: Pair) -> None:
    """A node reads how strong the answer is that the owner of the prompt has stored."""
    store = pair.one.areas.store
    new = a_prompt("strong")
    await store.write_aside(lambda tx: repo.claim(tx, new, ""))
    for strength in Strength:
        await store.write_aside(
            lambda tx, strength=strength: repo.answered(tx, new, Outcome.APPROVED, "h", "", strength)  # type: ignore[misc]
        )
        found = await store.read(lambda tx: repo.read(tx, [new.id]))
        assert [each.strength for each in found] == [strength]


async def _equals(store: Engine, sql: str, expected: int) -> bool:
    return await store.read(lambda tx: tx.value(int, sql)) == expected


def a_prompt(name: str) -> Prompt:
    """Return a new prompt with this id and this key."""
    return Prompt(
        id=name,
        step=0,
        is_signed=True,
        key=name,
        owner="a node",
        waiter="a node",
        outcome="",
        handle="",
        text="",
        is_consumed=False,
        left_us=60_000_000,
        has_owner=True,
    )


# --- the table ----------------------------------------------------------------------------------------------------


async def test_a_result_is_consumed_once(pair: Pair) -> None:
    """Only the node with the newest request consumes a result, and only once."""
    pair.one.put(a_login())
    await prompted(pair.script)
    store, found = pair.one.areas.store, pair.script.started[0].challenge_id
    (prompt,) = await store.read(lambda tx: repo.read(tx, [found]))
    assert await store.write(lambda tx: repo.move(tx, prompt, "the newest"))
    consumed = [
        await store.write(lambda tx, node=node: repo.consume(tx, prompt, node))  # type: ignore[misc]
        for node in (prompt.owner, "the newest", "the newest")
    ]
    assert consumed == [False, True, False]


async def test_a_row_names_no_user(pair: Pair) -> None:
    """The keys of a prompt contain neither the user's name nor the code."""
    assert (await exchange(pair.one, a_login(password="hello123456")))[0] == ACCESS_ACCEPT
    rows = await pair.one.areas.store.read(lambda tx: tx.rows("select * from prompts"))
    assert len(rows) == 1
    assert not any(secret in str(rows) for secret in ("ann", "123456", "hello"))


async def test_expired_prompts_are_purged(pair: Pair) -> None:
    """Any node deletes prompts after their time, and those of other nodes."""
    pair.one.put(a_login())
    await prompted(pair.script)
    store = pair.two.areas.store
    purge = pair.two.areas.second.challenges.purge
    await purge(pair.two.areas.clock())
    assert await store.read(lambda tx: tx.value(int, "select count(*) from prompts")) == 1
    await store.write(lambda tx: tx.execute("update prompts set expires_at = now_us() - :kept - 1", kept=repo.KEPT_US))
    await purge(pair.two.areas.clock())
    assert await store.read(lambda tx: tx.value(int, "select count(*) from prompts")) == 0


async def test_a_restore_empties_the_table(pair: Pair, tmp_path: Path) -> None:
    """A restore replaces all logins, so a prompt from before it gets no answer."""
    pair.one.put(a_login())
    await prompted(pair.script)
    copy = tmp_path / "copy.db"
    pair.one.areas.store.write_copy(copy)
    await pair.one.areas.store.replace(copy)
    assert await pair.two.areas.store.read(lambda tx: tx.value(int, "select count(*) from prompts")) == 0

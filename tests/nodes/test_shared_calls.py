"""Prompts that two nodes share, seen from the calls of one node: the node that may answer, the codes that count, and
the ends of a wait."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.login.second import repo
from sallyport.areas.login.second.conversation import AnsweredElsewhere, Conversation, SecondFactorResult
from sallyport.areas.login.second.repo import Limit, Prompt
from sallyport.areas.login.second.session import ChallengeKind, Session
from sallyport.areas.login.second.shared import SharedCalls
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Answer, Code, Outcome, Question
from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.base.secret import Secret
from sallyport.metrics import PauseMetrics
from sallyport.radius.password import Method
from sallyport.store.model import Engine, Tx
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.vault import Vault
from tests.nodes.conftest import node, until
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
USER = (1, "ann")
ID = f"{1:032x}"
"""The challenge of the first conversation."""


class HeldStore:
    """A store whose reads a test can hold back, after they have read. gate: what a read waits for, or None."""

    def __init__(self, store: Engine) -> None:
        self._store = store
        self.gate: trio.Event | None = None
        self.reads = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def read(self, work: Callable[[Tx], object]) -> object:
        """Read, and wait for the gate."""
        found, gate = await self._store.read(work), self.gate
        self.reads += 1
        if gate is not None:
            await gate.wait()
        return found


class Desk:
    """Two nodes over one database. Reads of the first can be held back."""

    def __init__(self, store: Engine, one: str, two: str) -> None:
        pauses = Pauses(store, PauseMetrics(CollectorRegistry()))
        vault = Vault(Secret(bytes(32)))
        self.store, self.held = store, HeldStore(store)
        self.one = SharedCalls(cast(Engine, self.held), vault, one, pauses)
        self.two = SharedCalls(store, vault, two, pauses)

    async def row(self) -> Prompt | None:
        """Return the row of the prompt."""
        found = await self.store.read(lambda tx: repo.read(tx, [ID]))
        return found[0] if found else None


@pytest.fixture
async def desk(store: PostgresStore) -> AsyncIterator[Desk]:
    """Yield two nodes that live."""
    nodes = node(store, "one"), node(store, "two")
    for each in nodes:
        await each.join()
    # both live for the whole test, however slow the machine is
    await store.write(lambda tx: tx.execute("update nodes set seen_at = seen_at + :hour", hour=3600 * SECOND))
    desk = Desk(store, *(each.session for each in nodes))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.one.run)
        nursery.start_soon(desk.two.run)
        yield desk
        nursery.cancel_scope.cancel()


def talk(
    number: int = 1, *, key: str = "a login", code: str | None = None, is_checked: bool = True, step: int = 0
) -> Conversation:
    """Return a conversation of ann. number: that of its challenge. key: what its requests have in common."""
    question = Question(f"{number:032x}", 1, "corp", "ann", "", "", "", 0, is_checked=is_checked)
    kind = ChallengeKind.CODE if step else ChallengeKind.APPROVAL
    session = Session(question, "own/1", 1, 1, "", kind, "", step, 0, expires_at=0)
    provider = SimpleNamespace(only_codes=False, room=trio.CapacityLimiter(1))
    request = SimpleNamespace(first={}, signed=True)
    arrival = SimpleNamespace(request=request, client=SimpleNamespace(tenant_id=1), at=0)
    login = SimpleNamespace(
        method=Method.PAP, code=None if code is None else Code(code), arrival=arrival, trace=None, known=None
    )
    attached = Attached("own", "own/1", provider, 60.0)  # type: ignore[arg-type]
    return Conversation(attached, session, (key,), trio.current_time() + 60, cast(Login, login))


async def unanswered() -> Answer:
    """Ask a provider that never answers."""
    await trio.sleep_forever()
    raise AssertionError


# --- who may answer -----------------------------------------------------------------------------------------------


async def test_a_result_inside_eap_is_used_once(desk: Desk) -> None:
    """The node at which the login waits may use the result, once. A result without a prompt is not shared."""
    first, second = talk(), talk(2)
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None
    result = SecondFactorResult(Reason.NONE, prompt=first.prompt)
    assert not await desk.one.consume(result)
    assert await desk.two.consume(result)
    assert not await desk.two.consume(result)
    assert await desk.one.consume(SecondFactorResult(Reason.NONE))


async def test_an_answer_is_written_once(desk: Desk) -> None:
    """The node that may not answer writes nothing. A challenge that waits for an approval leaves the result unused, for
    the answer to the challenge."""
    conversation, written = talk(), list[str]()
    assert await desk.one.claim(conversation, USER) is None
    session = replace(conversation.session, step=1)
    waits = SecondFactorResult(Reason.ASKED, session=session, prompt=conversation.prompt)
    ends = SecondFactorResult(Reason.NONE, prompt=conversation.prompt)

    async def answer(calls: SharedCalls, result: SecondFactorResult) -> bool:
        write = calls.once(result, lambda tx: written.append(result.reason))
        assert write is not None
        return await desk.store.write(write) is not False

    assert [await answer(desk.one, waits), await answer(desk.two, waits)] == [True, False]
    assert [await answer(desk.one, ends), await answer(desk.one, ends)] == [True, False]
    assert not await answer(desk.one, waits)
    assert written == [Reason.ASKED, Reason.NONE]


async def test_a_challenge_for_a_code_uses_the_result(desk: Desk) -> None:
    """The user's code is a new question to the provider."""
    conversation = talk()
    assert await desk.one.claim(conversation, USER) is None
    session = replace(conversation.session, kind=ChallengeKind.CODE, step=1)
    assert await desk.one.consume(SecondFactorResult(Reason.ASKED, session=session, prompt=conversation.prompt))
    row = await desk.row()
    assert row is not None and row.is_consumed


async def test_a_login_returns_to_a_node(desk: Desk) -> None:
    """A node whose login went to another node gets it back with the next request, until the other one has answered."""
    first, second = talk(), talk()
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None
    first.move_away()
    assert await desk.one.return_here(first)
    row = await desk.row()
    assert row is not None and first.prompt is not None
    assert (first.elsewhere, row.waiter, first.prompt.waiter) == (False, row.owner, row.owner)
    first.move_away()
    assert await desk.two.return_here(second)
    assert await desk.two.consume(SecondFactorResult(Reason.NONE, prompt=second.prompt))
    assert not await desk.one.return_here(first)
    assert first.elsewhere


async def test_a_login_joins_the_prompt_of_another_node(desk: Desk) -> None:
    """The follower continues the challenge of the owner, until the owner's deadline. If the login has already got a
    challenge, the follower continues from there."""
    first, second, third = talk(), talk(2), talk(3)
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None
    assert (first.owns, second.owns) == (True, False)
    assert (second.session.id, second.session.step) == (first.session.id, 0)
    assert 0 < second.deadline - trio.current_time() <= 60
    await desk.store.write(lambda tx: repo.send(tx, replace(first.session, step=4)))
    assert await desk.two.claim(third, USER) is None
    assert (third.session.id, third.session.step) == (first.session.id, 4)


async def test_a_request_that_only_joins(desk: Desk) -> None:
    """Without a prompt of its login, a late retransmission gets no answer and prompts nobody."""
    late = talk()
    late.only_joins = True
    with pytest.raises(AnsweredElsewhere):
        await desk.one.claim(late, USER)
    assert await desk.row() is None


async def test_a_node_that_stops_owns_no_new_prompt(desk: Desk) -> None:
    """It leaves the prompt to the node that gets the next request."""
    conversation = talk()
    await desk.one.hand_over()
    assert await desk.one.claim(conversation, USER) is None
    assert not conversation.owns


@pytest.mark.parametrize("is_same", [True, False], ids=["the same conversation", "a new conversation"])
async def test_a_read_that_is_out_of_date(desk: Desk, other: PostgresStore, is_same: bool) -> None:
    """A login was at another node while a read began, and comes back before the read ends: it stays here."""
    first, at_two = talk(), talk()
    assert await desk.one.claim(first, USER) is None
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(_cancelled_by, scope, desk.one, first)
        await until(lambda: bool(desk.one._watched))
        desk.held.gate, reads = trio.Event(), desk.held.reads
        new = desk.two._new(at_two)
        assert await other.write(lambda tx: repo.claim(tx, new, "")) is not None
        await until(lambda: desk.held.reads > reads)
        if is_same:
            assert await desk.one.return_here(first)
            here = first
        else:
            scope.cancel()
            await until(lambda: not desk.one._watched)
            here = talk()
            assert await desk.one.claim(here, USER) is None
            nursery.start_soon(desk.one.outcome, here, unanswered)
            await until(lambda: bool(desk.one._watched))
        desk.held.gate.set()
        desk.held.gate = None
        await trio.testing.wait_all_tasks_blocked()
        assert not here.elsewhere
        nursery.cancel_scope.cancel()


async def _cancelled_by(scope: trio.CancelScope, calls: SharedCalls, conversation: Conversation) -> None:
    with scope:
        await calls.outcome(conversation, unanswered)


# --- what ends a wait ---------------------------------------------------------------------------------------------


async def test_a_follower_gets_the_answer_of_the_owner(desk: Desk, other: PostgresStore) -> None:
    """A node that waits for another one reads the outcome. It does not ask the provider."""
    first, second = talk(), talk()
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None
    prompt, found = first.prompt, list[Answer]()
    assert prompt is not None

    async def follow() -> None:
        found.append(await desk.two.outcome(second, unanswered))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await other.write(lambda tx: repo.answered(tx, prompt, Outcome.DENIED, "h", "t"))
    assert [(each.outcome, each.handle) for each in found] == [(Outcome.DENIED, "h")]


async def test_a_prompt_that_a_third_node_has_taken_over(desk: Desk, other: PostgresStore) -> None:
    """A node that has seen the death of the owner too late asks nobody, and waits for the new owner."""
    first, second, asked = talk(), talk(), list[str]()
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None
    prompt = first.prompt
    assert prompt is not None
    second.prompt = replace(prompt, owner="a dead node", has_owner=False)

    async def ask() -> Answer:
        asked.append("a prompt")
        return Answer(Outcome.APPROVED)

    async def follow() -> None:
        assert (await desk.two.outcome(second, ask)).outcome is Outcome.DENIED

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await until(lambda: bool(desk.two._watched))
        await other.write(lambda tx: repo.answered(tx, prompt, Outcome.DENIED, "h", "t"))
    assert asked == []


async def test_a_prompt_that_has_gone_ends_the_wait(desk: Desk, other: PostgresStore) -> None:
    """After a restore the row is missing: the waiting request gets no answer, and nothing is asked."""
    first, second = talk(), talk()
    assert await desk.one.claim(first, USER) is None
    assert await desk.two.claim(second, USER) is None

    async def follow() -> None:
        with pytest.raises(AnsweredElsewhere):
            await desk.two.outcome(second, unanswered)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await other.write(lambda tx: tx.execute("delete from prompts"))


async def test_rows_that_vanish_all_the_time(desk: Desk) -> None:
    """A request that can neither insert nor find a prompt ends with an error of the store."""

    def suppress_inserts(tx: Tx) -> None:
        tx.execute("create function no_row() returns trigger language plpgsql as 'begin return null; end'")
        tx.execute("create trigger no_row before insert on prompts for each row execute function no_row()")

    await desk.store.write(suppress_inserts)
    with pytest.raises(StoreError, match="keep changing"):
        await desk.one.claim(talk(), USER)


# --- codes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({"code": "222222"}, Reason.LOCKED_OUT),
        ({"code": "222222", "is_checked": False}, None),
        ({}, None),
        ({"is_checked": False}, None),
    ],
    ids=["a code", "a code without a checked password", "a push", "a push without a checked password"],
)
async def test_which_codes_count(desk: Desk, last: dict[str, object], reason: Reason | None) -> None:
    """A user has one code here. Only codes behind a checked password count, because anybody can start other logins."""
    desk.one.codes = Limit(1, 60 * SECOND)
    assert await desk.one.claim(talk(1, key="one", code="111111"), USER) is None
    refused = await desk.one.claim(talk(2, key="two", **last), None)  # type: ignore[arg-type]
    assert (None if refused is None else refused.reason) == reason

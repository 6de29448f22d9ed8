"""Rows of prompts: the logins that may join one, the login that may use its result, and that it is used once."""

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from sallyport.areas.login.second import repo
from sallyport.areas.login.second.prompts import OPEN
from sallyport.areas.login.second.repo import HELD_US, Limit, NoCodeLeft, NoPrompt, Prompt
from sallyport.areas.login.second.session import LIFETIME_US, ChallengeKind, Session
from sallyport.areas.mfa.provider import Outcome, Question
from sallyport.base.clock import SECOND
from sallyport.store.model import Tx
from sallyport.store.postgres.engine import PostgresStore
from tests.peers.postgres import database_in, needs_postgres

pytestmark = needs_postgres
USER = "ann's key"
ROW = Prompt(
    id="p", step=0, is_signed=True, key="login", owner="one", waiter="one", outcome=Outcome.WAITING, handle="h",
    text="t", is_consumed=False, left_us=60 * SECOND, has_owner=False,
)  # fmt: skip


async def claim(
    store: PostgresStore, new: Prompt, *, only_joins: bool = False, has_code: bool = False
) -> Prompt | None:
    return await store.write(lambda tx: repo.claim(tx, new, USER, only_joins=only_joins, has_code=has_code))


@pytest.mark.parametrize(
    ("found", "new", "is_same"),
    [
        (ROW, ROW, True),
        (replace(ROW, is_consumed=True), ROW, False),
        (ROW, replace(ROW, is_signed=False), False),
        (replace(ROW, is_signed=False), ROW, True),
        (replace(ROW, is_signed=False), replace(ROW, is_signed=False), True),
        (ROW, replace(ROW, key="other"), True),
        (replace(ROW, step=1), replace(ROW, step=1), True),
        (replace(ROW, step=1), replace(ROW, step=1, key="other code"), False),
    ],
    ids=[
        "the same", "used", "an unsigned copy", "a signed copy", "both unsigned", "another key of a push",
        "the same code", "another code",
    ],
)  # fmt: skip
def test_which_request_joins(found: Prompt, new: Prompt, is_same: bool) -> None:
    """A request joins a prompt whose result is unused. It must have the same code, and be signed if the first was."""
    assert repo.is_same(found, new) is is_same


async def test_a_request_at_another_node_joins(store: PostgresStore) -> None:
    """The first request inserts the prompt. The next one finds it by its id or by the key of the login, and its node
    waits for the result."""
    assert await claim(store, ROW) is ROW
    found = await claim(store, replace(ROW, id="q", owner="two", waiter="two"))
    assert found is not None
    assert (found.id, found.owner, found.waiter, found.handle, found.text) == ("p", "one", "one", "h", "t")
    moved = (await store.read(lambda tx: repo.read(tx, ["p"])))[0]
    assert (moved.owner, moved.waiter) == ("one", "two")
    by_id = await claim(store, replace(ROW, key="", waiter="three"))
    assert by_id is not None and by_id.waiter == "two"


async def test_an_unsigned_request_moves_nothing(store: PostgresStore) -> None:
    """The login continues at the node of the signed request."""
    await claim(store, ROW)
    await claim(store, replace(ROW, is_signed=False, waiter="two"))
    assert (await store.read(lambda tx: repo.read(tx, ["p"])))[0].waiter == "one"


async def test_an_expired_prompt_is_not_joined(store: PostgresStore) -> None:
    """A login whose earlier prompt has expired gets a new one."""
    await claim(store, replace(ROW, left_us=0))
    new = replace(ROW, id="q")
    assert await claim(store, new) is new


async def test_a_repeated_step_finds_its_own_row(store: PostgresStore) -> None:
    """A copy of the request that has inserted a row gets this row, even if the row has expired or was used: the code is
    not checked again."""
    await claim(store, replace(ROW, left_us=0))
    for has_code in (False, True):
        found = await claim(store, replace(ROW, waiter="two"), has_code=has_code)
        assert found is not None and (found.id, found.left_us <= 0, found.key) == ("p", True, "login")
    assert await store.write(lambda tx: repo.consume(tx, ROW, "two"))
    for has_code in (False, True):
        found = await claim(store, ROW, has_code=has_code)
        assert found is not None and (found.id, found.is_consumed) == ("p", True)


async def test_a_request_that_joins_locks_the_row(store: PostgresStore, tmp_path: Path) -> None:
    """No other node can use the result before the transaction of the joining request has ended."""
    await claim(store, ROW)

    def join(tx: Tx) -> None:
        repo.claim(tx, ROW, "")
        with psycopg.connect(database_in(tmp_path)) as other, pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("select 1 from prompts for update nowait")

    await store.write(join)


STATES = {
    "new": replace(ROW, outcome=""),
    "pending": ROW,
    "next step": replace(ROW, step=1),
    "approved": replace(ROW, outcome=Outcome.APPROVED),
    "denied": replace(ROW, outcome=Outcome.DENIED),
    "used": replace(ROW, outcome=Outcome.APPROVED),
    "used early": ROW,
    "expired": replace(ROW, left_us=-1),
    "of another": replace(ROW, owner="two", waiter="two"),
}
"""Rows of prompts in all states, by their ids. All but one belong to the same user and node."""


async def insert_states(store: PostgresStore) -> None:
    """Insert a row for each state."""

    def insert(tx: Tx) -> None:
        for name, row in STATES.items():
            repo._insert(tx, replace(row, id=name, key=name), "bob's key" if name == "of another" else USER)
            if name.startswith("used"):
                repo.consume(tx, replace(row, id=name), "one")

    await store.write(insert)


async def rows_of_states(store: PostgresStore) -> dict[str, Prompt]:
    return {row.id: row for row in await store.read(lambda tx: repo.read(tx, [*STATES]))}


async def test_a_denial_ends_the_prompts_of_a_user(store: PostgresStore) -> None:
    """Pending prompts and unused approvals are denied, also if they have just expired. The node where an approval waits
    cannot use it. Used results, other outcomes and prompts of another user stay as they are."""
    await insert_states(store)
    await store.write(lambda tx: repo.deny(tx, USER))
    found = await rows_of_states(store)
    denied = {name for name, row in found.items() if row.outcome == Outcome.NOT_ME}
    assert denied == {"new", "pending", "next step", "approved", "expired"}
    assert {name for name, row in found.items() if not row.owner} == denied
    assert {name for name, row in found.items() if not row.waiter} == {"approved"}
    assert all(found[name].outcome == row.outcome for name, row in STATES.items() if name not in denied)


async def test_a_node_gives_up_its_prompts(store: PostgresStore) -> None:
    """Another node may take over the prompts without an outcome. Those of other nodes stay as they are."""
    await insert_states(store)
    await store.write(lambda tx: repo.give_up(tx, "one"))
    found = await rows_of_states(store)
    assert {name for name, row in found.items() if not row.owner} == {"new", "pending", "next step", "expired"}


async def test_which_prompt_is_taken_over(store: PostgresStore) -> None:
    """A node becomes the owner of a pending prompt, unless its owner has changed meanwhile."""
    await insert_states(store)
    taken = set[str]()
    for name, row in STATES.items():
        seen = replace(row, id=name)
        assert await store.write(lambda tx, seen=seen: repo.take_over(tx, replace(seen, owner="three"), "four")) is None  # type: ignore[misc]
        found = await store.write(lambda tx, seen=seen: repo.take_over(tx, seen, "four"))  # type: ignore[misc]
        if found is not None:
            assert (found.id, found.owner) == (name, "four")
            taken.add(name)
        assert {id_ for id_, row in (await rows_of_states(store)).items() if row.owner == "four"} == taken
    assert taken == {"new", "pending", "next step", "expired", "of another"}


async def test_a_request_that_only_joins(store: PostgresStore) -> None:
    """Without a prompt of its login, it inserts none."""
    with pytest.raises(NoPrompt):
        await claim(store, ROW, only_joins=True)
    assert not await store.read(lambda tx: repo.read(tx, ["p"]))
    await claim(store, ROW)
    found = await claim(store, ROW, only_joins=True)
    assert found is not None and found.id == "p"


async def test_a_user_has_few_open_prompts(store: PostgresStore) -> None:
    """A prompt beyond the limit is not inserted. The next step of a login sends no prompt, and neither does a code
    with the password."""
    for number in range(OPEN):
        assert await claim(store, replace(ROW, id=f"p{number}", key=f"login {number}")) is not None
    beyond = replace(ROW, id="q", key="another login")
    assert await claim(store, beyond) is None
    assert not await store.read(lambda tx: repo.read(tx, ["q"]))
    assert await claim(store, replace(beyond, step=1)) is not None
    assert await claim(store, replace(beyond, id="r", key="with a code", outcome=""), has_code=True) is not None


async def test_a_user_has_few_wrong_codes(store: PostgresStore) -> None:
    """A code beyond the limit is not checked, and its prompt is not inserted."""
    limit = Limit(1, 60 * SECOND)

    async def check(number: int) -> Prompt | None:
        new = replace(ROW, id=f"p{number}", key=f"code {number}", outcome="")
        return await store.write(lambda tx: repo.claim(tx, new, USER, limit, has_code=True))

    assert await check(1) is not None
    with pytest.raises(NoCodeLeft):
        await check(2)
    assert not await store.read(lambda tx: repo.read(tx, ["p2"]))


async def test_a_result_is_used_once(store: PostgresStore) -> None:
    """Only the node at which the login waits may use the result, and no login joins it afterwards."""
    await claim(store, ROW)

    async def use(node: str) -> tuple[bool, bool]:
        return await store.write(lambda tx: (repo.holds(tx, ROW, node), repo.consume(tx, ROW, node)))

    await claim(store, replace(ROW, id="of another login", key="another", owner="two", waiter="two"))
    assert await use("two") == (False, False)
    moved = await store.write(lambda tx: repo.move(tx, ROW, "two"))
    assert moved is not None and moved.waiter == "two"
    assert await use("one") == (False, False)
    assert await use("two") == (True, True)
    assert await use("two") == (False, False)
    assert await store.write(lambda tx: repo.move(tx, ROW, "one")) is None
    assert (await store.read(lambda tx: repo.read(tx, ["p"])))[0].is_consumed
    new = replace(ROW, id="q")
    assert await claim(store, new) is new


async def test_an_approved_row_holds_its_login(store: PostgresStore) -> None:
    """After an approval was used, a request of the login inserts no prompt for some seconds, and joins nothing."""
    await claim(store, ROW)
    assert await store.write(lambda tx: repo.answered(tx, ROW, Outcome.APPROVED, "h", "t"))
    assert await store.write(lambda tx: repo.consume(tx, ROW, "one"))
    new = replace(ROW, id="q", waiter="two")
    with pytest.raises(NoPrompt):
        await claim(store, new)
    found = (await store.read(lambda tx: repo.read(tx, ["p"])))[0]
    assert (found.waiter, 0 < found.left_us <= HELD_US) == ("one", True)
    await store.write(lambda tx: tx.execute("update prompts set expires_at = now_us()"))
    assert await claim(store, new) is new


async def test_a_typed_code_is_not_held(store: PostgresStore) -> None:
    """A login with a code sends no prompt, so it is a new login even just after the approval of the former one."""
    await claim(store, ROW)
    assert await store.write(lambda tx: repo.answered(tx, ROW, Outcome.APPROVED, "h", "t"))
    assert await store.write(lambda tx: repo.consume(tx, ROW, "one"))
    new = replace(ROW, id="q", waiter="two", outcome="")
    assert await claim(store, new, has_code=True) is new


async def test_a_challenge_ends_by_the_clock_of_the_database(store: PostgresStore) -> None:
    """A node whose clock is wrong sends challenges of the same length as others."""
    question = Question("p", 1, "corp", "ann", "", "", "", 0)
    session = Session(question, "", 1, 1, "", ChallengeKind.CODE, "", 1, 0, expires_at=0)
    assert await store.read(lambda tx: repo.sent(tx, "p")) is None
    other = replace(session, question=replace(question, challenge_id="other"))
    await store.write(lambda tx: repo.send(tx, other))
    await store.write(lambda tx: tx.execute("update challenges set expires_at = now_us()"))
    await store.write(lambda tx: repo.send(tx, session))
    found = await store.read(lambda tx: repo.sent(tx, "p"))
    assert found is not None
    assert found[0].id == "p"
    assert LIFETIME_US - 60 * SECOND < found[1] <= LIFETIME_US

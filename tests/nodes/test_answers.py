"""Slow actions of the console whose waiting page reaches another node than the one that runs the action."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from starlette.responses import Response

from sallyport.console.running import packed, unpacked
from sallyport.nodes.answers import KEPT_US, MAX_SIZE, SharedAnswers
from sallyport.nodes.node import DEAD_US
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import SetClock
from tests.console.test_running import slow_directory
from tests.console.visitor import Site, Visitor, site_of, text_of
from tests.nodes.conftest import Pair
from tests.nodes.test_service import silent
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
FORM = "/directories/add?domain=1"
FIELDS = {"directoryName": "AD", "baseDN": "dc=x", "do": "test"}
OWN, OTHER = 1, 2


@asynccontextmanager
async def browsers(pair: Pair, clock: SetClock) -> AsyncIterator[tuple[Site, Visitor, Visitor]]:
    """Yield the console of the first node, and a signed-in browser at each node with the same cookies."""
    one, two = (site_of(areas, clock) for areas in (pair.one, pair.two))
    async with one.visitor() as here, two.visitor() as there:
        assert (await here.sign_in(await one.token())).status_code == 303
        there.http.cookies = here.http.cookies
        yield one, here, there


async def test_another_node_shows_the_progress_and_then_the_answer(pair: Pair, clock: SetClock) -> None:
    """A refresh may reach any node: it sees that the action runs, then its answer with the submitted values."""
    answers = trio.Event()
    async with (
        trio.open_nursery() as nursery,
        slow_directory(answers) as url,
        browsers(pair, clock) as (one, here, there),
    ):
        await nursery.start(one.running.run)
        address = (await here.send(FORM, {**FIELDS, "appUrl": url})).headers["location"]
        waiting = await there.get(address)
        assert "refresh" in waiting.headers, f"{waiting.status_code} {text_of(waiting)}"
        assert "shows the result as soon as it is there" in text_of(waiting)
        answers.set()
        shown = await until_answered(there, address)
        assert "Nothing is saved" in text_of(shown) and 'value="AD"' in shown.text
        assert (await there.get(address)).headers["location"] == FORM
        nursery.cancel_scope.cancel()


async def test_a_redirect_keeps_its_notice(pair: Pair, clock: SetClock) -> None:
    """The headers of an answer are those of the node that made it, with the cookie of its notice."""
    response = Response(status_code=303, headers={"location": "/x"})
    response.set_cookie("notice", "done")
    await shared_of(pair).put(OWN, "n", packed(response))
    octets = await shared_of(pair, 1).take(OWN, "n")
    assert octets is not None
    found = unpacked(octets)
    assert (found.status_code, found.raw_headers) == (303, response.raw_headers)


async def test_an_answer_belongs_to_its_session_and_is_fetched_once(pair: Pair) -> None:
    """Another session does not get it, and after it was fetched it is gone from the database."""
    shared, elsewhere = shared_of(pair), shared_of(pair, 1)
    await shared.put(OWN, "n", b"secret")
    with pytest.raises(LookupError):
        await elsewhere.take(OTHER, "n")
    assert b"secret" not in (await stored(pair))[0]
    found = await elsewhere.take(OWN, "n")
    assert found == b"secret"
    with pytest.raises(LookupError):
        await shared.take(OWN, "n")


async def test_a_late_state_does_not_replace_the_answer(pair: Pair) -> None:
    """The state `running` may be written after the answer."""
    shared = shared_of(pair)
    await shared.put(OWN, "n", b"done")
    await shared.put(OWN, "n", None)
    assert await shared_of(pair, 1).take(OWN, "n") is not None


async def test_an_action_of_a_dead_node_does_not_run(pair: Pair) -> None:
    """If the process ends, its page does not wait for ever, and its row is deleted with the next action."""
    await shared_of(pair).put(OWN, "n", None)
    elsewhere = shared_of(pair, 1)
    assert await elsewhere.take(OWN, "n") is None
    await silent(pair.two.store, "one", DEAD_US + 1)  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        await elsewhere.take(OWN, "n")
    await elsewhere.put(OWN, "other", b"x")
    assert len(await stored(pair)) == 1


async def test_an_unread_answer_expires(pair: Pair) -> None:
    """The next action deletes the answers that are too old."""
    shared = shared_of(pair)
    await shared.put(OWN, "old", b"x")
    await pair.one.store.write(lambda tx: tx.execute("update console_answers set at = at - :us", us=KEPT_US + 1))
    await shared.put(OWN, "new", b"y")
    assert len(await stored(pair)) == 1


async def test_a_large_answer_is_not_written(pair: Pair) -> None:
    """A large export is made again by the node that is asked for it."""
    shared = shared_of(pair)
    await shared.put(OWN, "n", None)
    await shared.put(OWN, "n", b"x" * (MAX_SIZE + 1))
    with pytest.raises(LookupError):
        await shared_of(pair, 1).take(OWN, "n")


async def until_answered(visitor: Visitor, address: str) -> httpx.Response:
    """Refresh the page of an action until it shows the answer."""
    with trio.fail_after(60):
        while "refresh" in (page := await visitor.get(address)).headers:
            await trio.sleep(0.05)
    return page


def shared_of(pair: Pair, number: int = 0) -> SharedAnswers:
    """Return the answers as the first or the second node of a pair knows them."""
    areas = (pair.one, pair.two)[number]
    assert isinstance(areas.store, PostgresStore)
    return SharedAnswers(areas.store, pair.nodes[number], areas.vault)


async def stored(pair: Pair) -> list[bytes]:
    """Return the answers in the database."""
    rows = await pair.one.store.read(lambda tx: tx.rows("select answer from console_answers order by at"))
    return [bytes(row[0]) if isinstance(row[0], bytes) else b"" for row in rows]

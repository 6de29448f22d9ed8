"""Who asks for much waits for itself."""

import time
from pathlib import Path

import trio
import trio.testing

from sallyport.base.actor import Actor, acting_as
from sallyport.base.fair_places import FairPlaces
from sallyport.store.model import Tx
from sallyport.store.sqlite import SEARCHERS
from tests.areas import running_store


async def test_places_are_handed_on_in_turns() -> None:
    """Each who waits gets the next place in turn, whoever came first; who is cancelled has no turn."""
    places, came = FairPlaces[str](1), list[str]()

    async def take(who: str, number: int) -> None:
        async with places.place(who):
            came.append(f"{who}{number}")

    async with trio.open_nursery() as nursery, places.place("a"):
        for number, who in ((1, "a"), (2, "a"), (3, "a"), (1, "b"), (2, "b")):
            nursery.start_soon(take, who, number)
            await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01):
            await take("c", 1)
    assert came == ["a1", "b1", "a2", "b2", "a3"]
    with trio.fail_after(5):
        await take("d", 1)


async def test_a_token_that_searches_much_leaves_others_their_turns(tmp_path: Path) -> None:
    """However many searches of one wait, another's is next but those that run."""
    ended = list[str]()

    async def search(who: str, seconds: float) -> None:
        def work(_tx: Tx) -> None:
            time.sleep(seconds)

        with acting_as(Actor("token", who)):
            await store.search(work)
        ended.append(who)

    async with running_store(tmp_path / "s.db") as store, trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(search, "greedy", 0.1)
        await trio.sleep(0.05)
        await search("other", 0)
        assert ended.index("other") <= SEARCHERS + 1

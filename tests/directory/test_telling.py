"""When logins hear of what an import changes."""

import trio
import trio.testing

from sallyport.directory.imports.telling import EVERY_S, Telling


async def test_once_a_second(autojump_clock: trio.testing.MockClock) -> None:
    """Of the first change at once, of those that follow once a second, of the last when the import rests."""
    told: list[tuple[int, float]] = []
    began = trio.current_time()
    telling = Telling(lambda domain_id: told.append((domain_id, round(trio.current_time() - began, 1))))
    for _ in range(20):
        telling.changed(1)
        await trio.sleep(EVERY_S / 8)
    telling.changed(2)
    assert told == [(1, 0.0), (1, 1.0), (1, 2.0), (2, 2.5)]
    telling.rest(1)
    telling.rest(1)
    telling.rest(2)
    assert told[4:] == [(1, 2.5)]
    telling.changed(1)
    assert told[5:] == [(1, 2.5)]

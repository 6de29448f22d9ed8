"""The rate limit of an import's invalidations."""

import trio
import trio.testing

from sallyport.directory.principals import INVALIDATE_S, Invalidations


async def test_once_a_second(autojump_clock: trio.testing.MockClock) -> None:
    """The first change of a domain is passed on at once, the following once a second, the last by flush."""
    invalidated: list[tuple[int, float]] = []
    began = trio.current_time()
    invalidations = Invalidations(
        lambda domain_id: invalidated.append((domain_id, round(trio.current_time() - began, 1)))
    )
    for _ in range(20):
        invalidations.changed(1)
        await trio.sleep(INVALIDATE_S / 8)
    invalidations.changed(2)
    assert invalidated == [(1, 0.0), (1, 1.0), (1, 2.0), (2, 2.5)]
    invalidations.flush(1)
    invalidations.flush(1)
    invalidations.flush(2)
    assert invalidated[4:] == [(1, 2.5)]
    invalidations.changed(1)
    assert invalidated[5:] == [(1, 2.5)]

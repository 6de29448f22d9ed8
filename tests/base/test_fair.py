"""A source that sends much waits for itself."""

import pytest

from sallyport.base.fair import FairQueue, FairShares

ONE, OTHER, THIRD = ("192.0.2.1", 1), ("192.0.2.1", 2), ("192.0.2.2", 1)


def queued(*items: tuple[tuple[str, int], int]) -> FairQueue[tuple[str, int], int]:
    """A queue that the items of some sources were put into."""
    queue: FairQueue[tuple[str, int], int] = FairQueue()
    for source, item in items:
        queue.put(source, item)
    return queue


def taken(queue: FairQueue[tuple[str, int], int]) -> list[int]:
    """Everything, as it comes."""
    return [queue.take() for _ in range(len(queue))]


def test_sources_take_turns() -> None:
    """Whoever comes behind many of another is next but one; within a source the first comes first."""
    queue = queued((ONE, 1), (ONE, 2), (ONE, 3), (OTHER, 4), (THIRD, 5), (OTHER, 6))
    assert taken(queue) == [1, 4, 5, 2, 6, 3]


def test_one_source_keeps_its_order() -> None:
    """Alone, it is a queue as any other."""
    assert taken(queued(*((ONE, number) for number in range(10)))) == list(range(10))


def test_nobody_gains_by_coming_again() -> None:
    """A source whose last item was taken waits for everybody's turn with its next one."""
    queue = queued((ONE, 1), (OTHER, 2), (OTHER, 3))
    assert queue.take() == 1
    queue.put(ONE, 4)
    assert taken(queue) == [2, 4, 3]


def test_an_empty_queue() -> None:
    """Nothing is left of sources that have nothing in it."""
    queue = queued((ONE, 1), (OTHER, 2))
    assert taken(queue) == [1, 2]
    assert not queue
    with pytest.raises(KeyError):
        queue.take()


def test_owners_take_turns() -> None:
    """An owner with many sources is one among others, and its sources take turns within it."""
    queue: FairShares[int, int, str] = FairShares()
    for owner, source, item in ((1, 1, "a"), (1, 1, "b"), (1, 2, "c"), (2, 1, "d"), (2, 1, "e")):
        assert queue.put(owner, source, item)
    assert [queue.take() for _ in range(len(queue))] == ["a", "d", "c", "e", "b"]
    assert not queue


def test_an_owner_with_its_share_puts_nothing_into_a_full_queue() -> None:
    """Another owner does, up to its own share."""
    queue: FairShares[int, int, int] = FairShares(4)
    assert [queue.put(1, 1, number) for number in range(6)] == [True] * 4 + [False] * 2
    assert [queue.put(2, 1, number) for number in range(6)] == [True] * 2 + [False] * 4
    assert not queue.put(1, 2, 0)
    assert len(queue) == 6

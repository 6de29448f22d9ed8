"""A source that sends much waits for itself."""

import pytest

from sallyport.base.fair import FairQueue

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

"""Tests of the room for entries in a transaction of the journal."""

import pytest

from sallyport.areas.login.room import LEAST, MAX_ENTRIES, SHORT_S, Room


def test_a_long_transaction_makes_the_next_ones_small() -> None:
    """The next transaction has as many entries as fit into the time, but never less than LEAST."""
    room = Room()
    room.note(1000, 2 * SHORT_S)
    assert room.entries == 500
    room.note(300, 2 * SHORT_S)
    assert room.entries == 150
    room.note(1, 100 * SHORT_S)
    assert room.entries == LEAST


def test_a_few_entries_that_take_a_little_too_long_change_nothing_upwards() -> None:
    """A long transaction never makes the room larger."""
    room = Room()
    room.note(1000, 4 * SHORT_S)
    room.note(400, SHORT_S * 1.01)
    assert room.entries == 250


@pytest.mark.parametrize("entries", [100, 5000])
def test_full_transactions_that_are_short_make_room_again(entries: int) -> None:
    """Each one adds a quarter, up to the maximum. One that is not full says nothing."""
    room = Room()
    room.note(1000, 100.0)
    room.note(LEAST - 1, 0.0)
    assert room.entries == LEAST
    room.note(entries, SHORT_S)
    assert room.entries == 125
    for _ in range(20):
        room.note(MAX_ENTRIES, 0.0)
    assert room.entries == MAX_ENTRIES

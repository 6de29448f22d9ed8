"""Tests of the places for pending requests, which clients share fairly."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from sallyport.areas.login.listen.exchange import Counts, RadiusService
from sallyport.areas.login.listen.pending import PendingSlots
from sallyport.base.fair import Room
from sallyport.metrics import LoginMetrics, RadiusMetrics
from sallyport.radius.packet import ACCESS_ACCEPT


def flood(room: Room, client: int, tenant: int = 1) -> int:
    """Take places for a client until it gets no more. Return the number of places."""
    taken = 0
    while room.take(client, tenant):
        taken += 1
    return taken


def test_one_client_holds_half() -> None:
    """One client holds at most half of the places."""
    room = Room(1000)
    assert flood(room, 1) == 500
    assert [room.take(client, 1) for client in range(2, 300)] == [True] * 298


def test_a_tenant_leaves_an_eighth_to_the_others() -> None:
    """However many clients a tenant has, it leaves an eighth of the places free.

    The next tenant leaves an eighth of these free, and so on.
    """
    room = Room(800)
    assert sum(flood(room, client) for client in range(1000)) == 700
    assert flood(room, 1000, tenant=2) == 50
    assert not any(room.take(client, 1) for client in range(2000))
    assert flood(room, 1001, tenant=2) == 25
    room.leave(1000, 2)
    assert room.take(1002, 3)


def test_the_shares_even_out() -> None:
    """If three clients send floods while places become free, each of them has a quarter of the places in the end, and a
    quarter stays free."""
    room = Room(1000)
    held = {client: flood(room, client) for client in (1, 2, 3)}
    for _ in range(5000):  # a request of the busiest client ends, and all clients want the free place
        largest = max(held, key=lambda client: held[client])
        room.leave(largest, 1)
        held[largest] -= 1
        for client in held:
            held[client] += room.take(client, 1)
    assert all(abs(each - 250) <= 2 for each in held.values())
    assert abs(room.free - 250) <= 6


def test_a_client_that_holds_nothing_is_forgotten() -> None:
    """A client without a pending request uses no memory.

    Therefore any number of clients can be added and deleted over time.
    """
    room = Room(1000)
    for client in range(10):
        assert room.take(client, 1)
    for client in range(9):
        room.leave(client, 1)
    assert room.clients == 1


def test_names_of_clients_take_no_memory_without_end() -> None:
    """The metrics show the first thousand client names, and no other names are stored."""
    registry = CollectorRegistry()
    counts = Counts(RadiusService.AUTHENTICATION, "", RadiusMetrics(registry), LoginMetrics(registry))
    for number in range(2000):
        counts.answered(f"first {number}", ACCESS_ACCEPT, 0, None)
    tracemalloc.start()
    try:
        for number in range(20_000):
            counts.answered(f"client {number}", ACCESS_ACCEPT, 0, None)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    labels = {"client": "other", "outcome": "Access-Accept"}
    assert registry.get_sample_value("sallyport_client_requests_total", labels) == 21_000


def test_signed_and_unsigned_requests_have_places_of_their_own() -> None:
    """A flood of unsigned requests from any clients does not use the places of signed requests."""
    waiting = PendingSlots(1000)
    for client in range(20):
        flood(waiting.unproven, client, tenant=client)
    assert (waiting.now, waiting.unproven.free) == (250, 0)
    assert flood(waiting.proven, 1) == 375


def test_the_smallest_room_takes_one() -> None:
    """One request of each kind can always wait."""
    waiting = PendingSlots(1)
    assert waiting.proven.take(1, 1)
    assert waiting.unproven.take(1, 1)
    assert not waiting.proven.take(2, 1)


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=300))
def test_the_limits_always_hold(limit: int, steps: list[tuple[int, bool]]) -> None:
    """The limit is never exceeded.

    A request is refused only if its client holds as many places as are free, or its tenant holds seven times as many.
    Freed places can be taken again.
    """
    room, held = Room(limit), [0] * 7
    for client, comes in steps:
        tenant = client // 4
        if comes:
            free, of_tenant = limit - sum(held), sum(held[4:] if tenant else held[:4])
            got = room.take(client, tenant)
            assert got is (held[client] < free and of_tenant < 7 * free)
            held[client] += got
        elif held[client]:
            room.leave(client, tenant)
            held[client] -= 1
        assert room.free == limit - sum(held) >= 0
    for client, number in enumerate(held):
        for _ in range(number):
            room.leave(client, client // 4)
    assert room.free == limit

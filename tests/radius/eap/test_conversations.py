"""Conversations by State: found, forgotten, and bounded."""

import gc
import tracemalloc

import pytest

from sallyport.radius.eap.conversation import Conversation, Conversations
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Send
from sallyport.radius.eap.packet import IDENTITY, PEAP, RESPONSE, Packet, decode, encode
from tests.radius.eap.conftest import Site
from tests.radius.eap.supplicant import TlsSide, silent
from tests.radius.eap.users import EVERYTHING


def blank() -> Conversation:
    """A conversation without TLS."""
    return Conversation(offers(Terms(None, EVERYTHING)), now=0)


def test_a_state_finds_its_conversation() -> None:
    """For the RADIUS client that it was given to, until it is over or too old."""
    table, one = Conversations[Conversation](age_s=60), blank()
    state = table.add(1, 1, one, now=0)
    assert len(state) == 16
    assert table.find(1, state, now=59) is one
    assert table.find(2, state, now=0) is None
    assert table.find(1, bytes(16), now=0) is None
    assert table.find(1, state, now=118) is one
    assert table.find(1, state, now=178) is None
    table.end(state)
    table.end(state)
    assert (table.find(1, state, now=0), len(table)) == (None, 0)


def test_the_busiest_client_makes_room() -> None:
    """Whoever begins too many loses its own oldest, and nobody else's."""
    table = Conversations[Conversation](most=10)
    quiet = table.add(1, 1, blank(), now=0)
    states = [table.add(1, 2, blank(), now=0) for _ in range(30)]
    assert len(table) == 10
    assert table.find(1, quiet, now=0) is not None
    assert [table.find(2, each, now=0) is not None for each in states] == [False] * 21 + [True] * 9
    assert table.find(3, table.add(1, 3, blank(), now=0), now=0) is not None
    assert table.find(1, quiet, now=0) is not None


def test_the_busiest_tenant_makes_room() -> None:
    """A tenant with many clients that begin one conversation each loses its own, and no other tenant's client."""
    table = Conversations[Conversation](most=10)
    busy = [table.add(1, 1, blank(), now=0) for _ in range(4)]
    states = [table.add(2, client, blank(), now=0) for client in range(100, 130)]
    assert all(table.find(1, each, now=0) for each in busy)
    assert [table.find(100 + number, each, now=0) is not None for number, each in enumerate(states)] == (
        [False] * 24 + [True] * 6
    )


def test_old_ones_are_forgotten() -> None:
    """By a purge, and when the same client begins anew; somebody hears of each, and not of those that have ended."""
    left: list[Conversation] = []
    table = Conversations[Conversation](age_s=60, left=left.append)
    table.end(table.add(1, 1, blank(), now=0))
    assert left == []
    table.add(1, 1, blank(), now=0)
    table.add(1, 1, blank(), now=60)
    assert len(table) == 1
    table.add(1, 2, blank(), now=61)
    table.purge(now=120)
    assert len(table) == 1
    table.purge(now=121)
    assert (len(table), len(left)) == (0, 3)


@pytest.mark.torture
def test_thousands_begun_and_left(site: Site) -> None:
    """Ten thousand clients that say hello inside TLS and go leave no more than the table holds."""
    table = Conversations[Conversation](most=200)
    hello = TlsSide(PEAP, silent).respond(Packet(1, 1, PEAP, b"\x20"))
    terms = Terms(site.server, EVERYTHING)

    def leave(count: int) -> int:
        for _ in range(count):
            conversation = Conversation(offers(terms), now=0)
            outcome = conversation.receive(encode(Packet(RESPONSE, 0, IDENTITY, b"ann")))
            assert isinstance(outcome, Send)
            start = decode(outcome.octets)
            conversation.receive(encode(Packet(RESPONSE, start.identifier, PEAP, hello)))
            table.add(1, 1, conversation, now=0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = leave(1000)
        after = leave(9000)
    finally:
        tracemalloc.stop()
    assert len(table) == 200
    assert after < before + 500_000

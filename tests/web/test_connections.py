"""Tests of which connection is closed to make room for a new one."""

import pytest

from sallyport.web.connections import ConnectionTable

HOST = "192.0.2.1"


class SampleConnection:
    """A connection with a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def __repr__(self) -> str:
        return self.name

    def hang_up(self) -> None:
        self.closed = True


def entered(
    table: ConnectionTable[SampleConnection], name: str, host: str = HOST, *, waits: bool = True, known: bool = False
) -> SampleConnection:
    """Add a connection to the table and return it."""
    connection = SampleConnection(name)
    table.enter(connection, host)
    table.note(connection, waits=waits, known=known)
    return connection


def test_the_oldest_idle_unauthenticated_connection_is_closed() -> None:
    """The oldest idle connection without authentication is closed first.

    Authenticated connections are closed only if no other connection is idle.
    """
    table: ConnectionTable[SampleConnection] = ConnectionTable(10)
    known = entered(table, "known", known=True)
    first, second = entered(table, "first"), entered(table, "second")
    table.make_room()
    assert (known.closed, first.closed, second.closed) == (False, True, False)
    table.make_room()
    table.make_room()
    assert (known.closed, second.closed) == (True, True)


def test_a_working_request_is_never_closed() -> None:
    """A connection is not closed while the service works on its request."""
    table: ConnectionTable[SampleConnection] = ConnectionTable(10)
    working = entered(table, "working", waits=False)
    table.make_room()
    assert not working.closed
    assert table.waiting() == []


def test_an_answered_request_restarts_the_idle_time() -> None:
    """After an answered request its connection is the newest idle one."""
    table: ConnectionTable[SampleConnection] = ConnectionTable(10)
    first, second = entered(table, "first"), entered(table, "second")
    table.note(first, waits=False, known=False)
    table.note(first, waits=True, known=False)
    table.make_room()
    assert (first.closed, second.closed) == (False, True)


def test_an_address_has_few_unauthenticated_connections() -> None:
    """A connection beyond the limit closes the oldest idle connection of its address.

    Other addresses and authenticated connections are not affected.
    """
    table: ConnectionTable[SampleConnection] = ConnectionTable(2)
    other = entered(table, "other", "192.0.2.2")
    known = entered(table, "known", known=True)
    several = [entered(table, str(number)) for number in range(3)]
    assert [connection.closed for connection in (other, known, *several)] == [False, False, True, False, False]


def test_a_new_connection_is_closed_if_no_other_of_its_address_is_idle() -> None:
    """A request that the service is working on is not interrupted."""
    table: ConnectionTable[SampleConnection] = ConnectionTable(2)
    working = [entered(table, str(number), waits=False) for number in range(2)]
    newcomer = SampleConnection("newcomer")
    table.enter(newcomer, HOST)
    assert newcomer.closed
    assert not any(connection.closed for connection in working)


@pytest.mark.parametrize(
    ("hosts", "closes"),
    [
        pytest.param(("2001:db8::1", "2001:db8::2"), True, id="one /64"),
        pytest.param(("2001:db8::1", "2001:db8:0:1::1"), False, id="two /64"),
        pytest.param(("::ffff:192.0.2.1", "192.0.2.1"), True, id="one IPv4 address in two forms"),
    ],
)
def test_a_64_bit_prefix_counts_as_one_address(hosts: tuple[str, str], closes: bool) -> None:
    """An IPv6 host may use a complete /64. An IPv4-mapped address counts as its IPv4 address."""
    table: ConnectionTable[SampleConnection] = ConnectionTable(1)
    first = entered(table, "first", hosts[0])
    entered(table, "second", hosts[1])
    assert first.closed is closes


def test_an_ended_connection_is_removed() -> None:
    table: ConnectionTable[SampleConnection] = ConnectionTable(1)
    for number in range(3):
        connection = entered(table, str(number))
        table.leave(connection)
        assert not connection.closed
    assert table.waiting() == []

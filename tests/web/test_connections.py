"""Which connection is closed to make room."""

import pytest

from sallyport.web.connections import ConnectionTable

HOST = "192.0.2.1"


class Line:
    """A connection by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def __repr__(self) -> str:
        return self.name

    def hang_up(self) -> None:
        self.closed = True


def entered(
    table: ConnectionTable[Line], name: str, host: str = HOST, *, waits: bool = True, known: bool = False
) -> Line:
    """A connection that has come in."""
    line = Line(name)
    table.enter(line, host)
    table.note(line, waits=waits, known=known)
    return line


def test_the_stranger_that_waits_longest_gives_way() -> None:
    """Known connections stay while strangers wait, however long they have waited themselves."""
    table: ConnectionTable[Line] = ConnectionTable(10)
    known = entered(table, "known", known=True)
    first, second = entered(table, "first"), entered(table, "second")
    table.make_room()
    assert (known.closed, first.closed, second.closed) == (False, True, False)
    table.make_room()
    table.make_room()
    assert (known.closed, second.closed) == (True, True)


def test_a_working_request_is_never_closed() -> None:
    """It is the service that is due, and not the peer."""
    table: ConnectionTable[Line] = ConnectionTable(10)
    working = entered(table, "working", waits=False)
    table.make_room()
    assert not working.closed
    assert table.waiting() == []


def test_a_connection_that_waits_again_waits_from_then_on() -> None:
    """An answered request puts its connection behind the others."""
    table: ConnectionTable[Line] = ConnectionTable(10)
    first, second = entered(table, "first"), entered(table, "second")
    table.note(first, waits=False, known=False)
    table.note(first, waits=True, known=False)
    table.make_room()
    assert (first.closed, second.closed) == (False, True)


def test_an_address_holds_few_strangers() -> None:
    """One more closes the one that waits longest; other addresses and known connections are not touched."""
    table: ConnectionTable[Line] = ConnectionTable(2)
    other = entered(table, "other", "192.0.2.2")
    known = entered(table, "known", known=True)
    lines = [entered(table, str(number)) for number in range(3)]
    assert [line.closed for line in (other, known, *lines)] == [False, False, True, False, False]


def test_a_stranger_is_closed_itself_if_no_other_of_its_address_waits() -> None:
    """Requests that the service still works on are not broken off for a newcomer."""
    table: ConnectionTable[Line] = ConnectionTable(2)
    working = [entered(table, str(number), waits=False) for number in range(2)]
    newcomer = Line("newcomer")
    table.enter(newcomer, HOST)
    assert newcomer.closed
    assert not any(line.closed for line in working)


@pytest.mark.parametrize(
    ("hosts", "closes"),
    [
        pytest.param(("2001:db8::1", "2001:db8::2"), True, id="one /64"),
        pytest.param(("2001:db8::1", "2001:db8:0:1::1"), False, id="two /64"),
        pytest.param(("::ffff:192.0.2.1", "192.0.2.1"), True, id="one IPv4 address in two forms"),
    ],
)
def test_what_counts_as_one_address(hosts: tuple[str, str], closes: bool) -> None:
    """An IPv6 host may have a whole /64, so all of it counts as one address."""
    table: ConnectionTable[Line] = ConnectionTable(1)
    first = entered(table, "first", hosts[0])
    entered(table, "second", hosts[1])
    assert first.closed is closes


def test_an_ended_connection_is_forgotten() -> None:
    """Connections that come and go leave nothing behind."""
    table: ConnectionTable[Line] = ConnectionTable(1)
    for number in range(3):
        line = entered(table, str(number))
        table.leave(line)
        assert not line.closed
    assert table.waiting() == []

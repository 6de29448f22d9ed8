"""Tests of duplicate detection (RFC 5080 section 2.2.2) with simulated time."""

from sallyport.radius.duplicates import Duplicates, Entry, Source

NAS = ("192.0.2.1", 50000)
ONE, TWO = b"1" * 16, b"2" * 16


def note(
    duplicates: Duplicates,
    source: Source,
    identifier: int,
    authenticator: bytes,
    *,
    now: float,
    signed: bool = True,
    owner: int = 1,
) -> tuple[Entry, bool]:
    """Note a request, which is signed by default."""
    return duplicates.note(source, identifier, authenticator, signed=signed, now=now, owner=owner)


def test_a_request_is_new_once() -> None:
    """While a request has no answer, a request with the same source, identifier and authenticator is a duplicate."""
    duplicates = Duplicates(15)
    first, is_new = note(duplicates, NAS, 1, ONE, now=0)
    again, is_new_again = note(duplicates, NAS, 1, ONE, now=1)
    assert (is_new, is_new_again, again is first, first.answer) == (True, False, True, None)


def test_an_answered_request_has_its_octets() -> None:
    """For at least one window and at most two, a duplicate of an answered request finds the answer."""
    duplicates = Duplicates(15)
    entry, _ = note(duplicates, NAS, 1, ONE, now=0)
    entry.answer = b"accept"
    assert note(duplicates, NAS, 1, ONE, now=14.9)[0].answer == b"accept"
    assert note(duplicates, NAS, 1, ONE, now=29.9)[0].answer == b"accept"
    assert note(duplicates, NAS, 1, ONE, now=30.1)[1]


def test_sources_and_identifiers_are_distinguished() -> None:
    """A request with another port, address or identifier is another request."""
    duplicates = Duplicates(15)
    note(duplicates, NAS, 1, ONE, now=0)
    assert note(duplicates, (NAS[0], 50001), 1, ONE, now=0)[1]
    assert note(duplicates, ("192.0.2.2", NAS[1]), 1, ONE, now=0)[1]
    assert note(duplicates, NAS, 2, ONE, now=0)[1]


def test_a_new_authenticator_replaces_the_old_request() -> None:
    """A signed request with a new authenticator is new. The signed request before it is marked as replaced."""
    duplicates = Duplicates(15)
    old, _ = note(duplicates, NAS, 1, ONE, now=0)
    new, is_new = note(duplicates, NAS, 1, TWO, now=1)
    assert (is_new, old.replaced, new.replaced) == (True, True, False)
    assert note(duplicates, NAS, 1, ONE, now=2)[1]


def test_an_unsigned_request_replaces_nothing() -> None:
    """An unsigned request that has the identifier of another request is new. The other request stays known."""
    duplicates = Duplicates(15)
    signed, _ = note(duplicates, NAS, 1, ONE, now=0)
    unsigned = [note(duplicates, NAS, 1, authenticator, now=1, signed=False) for authenticator in (TWO, b"3" * 16)]
    assert [is_new for _, is_new in unsigned] == [True, True]
    assert not signed.replaced
    assert note(duplicates, NAS, 1, ONE, now=2) == (signed, False)
    for now in (2, 16, 29):  # in the second half of its time, the entry is among the old ones
        assert note(duplicates, NAS, 1, TWO, now=now, signed=False) == (unsigned[0][0], False)


def test_an_unsigned_copy_of_a_signed_request_is_a_duplicate() -> None:
    """An unsigned copy finds the answer of the signed request.

    It does not count as the arrival of the signed request.
    """
    duplicates = Duplicates(15)
    signed, _ = note(duplicates, NAS, 1, ONE, now=0)
    assert note(duplicates, NAS, 1, ONE, now=1, signed=False) == (signed, False)
    assert signed.last == 0


def test_a_signed_request_is_no_duplicate_of_an_unsigned_copy() -> None:
    """If a spoofed unsigned copy arrives first, the signed request is still treated as new."""
    duplicates = Duplicates(15)
    note(duplicates, NAS, 1, ONE, now=0, signed=False)
    assert note(duplicates, NAS, 1, ONE, now=1)[1]


def test_a_forgotten_request_is_new_again() -> None:
    """If a request is forgotten, its retransmission is new.

    Forgetting a request does not affect the request that replaced it.
    """
    duplicates = Duplicates(15)
    old, _ = note(duplicates, NAS, 1, ONE, now=0)
    duplicates.forget(old)
    new, is_new = note(duplicates, NAS, 1, ONE, now=1)
    duplicates.forget(old)
    assert is_new
    assert note(duplicates, NAS, 1, ONE, now=2)[0] is new


def test_a_parked_request_is_known_for_as_long_as_it_waits() -> None:
    """A login that waits for minutes is not started twice, and its answer is known afterwards."""
    duplicates = Duplicates(15)
    entry, _ = note(duplicates, NAS, 1, ONE, now=0)
    duplicates.park(entry)
    for now in (20, 40, 60, 80):
        assert note(duplicates, NAS, 1, ONE, now=now) == (entry, False)
    entry.answer = b"accept"
    duplicates.unpark(entry, now=81)
    assert note(duplicates, NAS, 1, ONE, now=94)[0].answer == b"accept"
    assert note(duplicates, NAS, 1, ONE, now=200)[1]


def test_a_flood_is_bounded() -> None:
    """However many sources send, at most two tables are kept, and each has at most `max_entries` entries."""
    duplicates = Duplicates(15, max_entries=100)
    for port in range(10_000):
        note(duplicates, ("192.0.2.1", port), 1, ONE, now=1)
    assert len(duplicates) <= 200


def test_requests_that_are_replaced_or_forgotten_need_no_room() -> None:
    """A NAS with one port sends many requests in a window, and many are forgotten. The answer to an earlier request is
    kept for the whole window."""
    duplicates = Duplicates(15, max_entries=100)
    first, _ = note(duplicates, NAS, 0, ONE, now=14.0)
    for number in range(1000):
        note(duplicates, NAS, 1 + number % 50, number.to_bytes(16), now=14.5)
        overloaded, _ = note(duplicates, NAS, 200, number.to_bytes(16), now=14.5)
        duplicates.forget(overloaded)
    note(duplicates, NAS, 51, TWO, now=15.5)
    assert note(duplicates, NAS, 0, ONE, now=15.6) == (first, False)


def test_a_flood_of_one_tenant_shortens_no_other_window() -> None:
    """The answers of a tenant are found for their whole window, even while another tenant floods the service.

    The memory stays bounded.
    """
    duplicates = Duplicates(15, max_entries=100)
    entry, _ = note(duplicates, NAS, 1, ONE, now=0, owner=1)
    entry.answer = b"accept"
    for port in range(10_000):
        note(duplicates, ("198.51.100.1", port), 1, ONE, now=1, owner=2)
    assert note(duplicates, NAS, 1, ONE, now=14.9, owner=1) == (entry, False)
    assert len(duplicates) <= 300
    note(duplicates, NAS, 2, ONE, now=100, owner=1)
    assert len(duplicates) == 1


def test_a_request_that_waited_is_found_after_a_silence() -> None:
    """A parked request is found, although its owner's window has ended meanwhile."""
    duplicates = Duplicates(15)
    entry, _ = note(duplicates, NAS, 1, ONE, now=0)
    duplicates.park(entry)
    note(duplicates, NAS, 1, ONE, now=100, owner=2)
    duplicates.unpark(entry, now=100)
    assert note(duplicates, NAS, 1, ONE, now=101) == (entry, False)
    duplicates.forget(entry)
    assert note(duplicates, NAS, 1, ONE, now=102)[1]


def test_a_request_that_waited_through_a_silence_has_its_window() -> None:
    """Its entry is found for a whole window after the end of its wait, even if no other request came meanwhile."""
    duplicates = Duplicates(15)
    entry, _ = note(duplicates, NAS, 1, ONE, now=0)
    duplicates.park(entry)
    duplicates.unpark(entry, now=100)
    assert note(duplicates, NAS, 1, ONE, now=114) == (entry, False)


def test_the_gap_between_the_requests_of_a_login() -> None:
    """The gap is the time between the last two requests, which tells how long the NAS waits. A new login has none."""
    duplicates = Duplicates(15)
    entry, _ = note(duplicates, NAS, 1, ONE, now=10)
    assert (entry.first, entry.last, entry.gap) == (10, 10, 0)
    note(duplicates, NAS, 1, ONE, now=13)
    assert (entry.first, entry.last, entry.gap) == (10, 13, 3)
    following, _ = note(duplicates, NAS, 2, TWO, now=18)
    following.follows(entry)
    assert (following.first, following.last, following.gap) == (10, 18, 5)


def test_unsigned_requests_of_two_senders_are_distinguished() -> None:
    """The same octets from another address are another request."""
    duplicates = Duplicates(15)
    other = ("192.0.2.2", NAS[1])
    assert [note(duplicates, each, 1, ONE, now=0, signed=False)[1] for each in (NAS, other)] == [True, True]


def test_a_request_that_waited_counts_for_the_limit() -> None:
    """Many requests that end their wait in a window start a new window, as new requests do."""
    duplicates = Duplicates(15, max_entries=10)
    entries = [note(duplicates, NAS, number, ONE, now=0)[0] for number in range(10)]
    for entry in entries:
        duplicates.park(entry)
    for entry in entries:
        duplicates.unpark(entry, now=100)
    first, _ = note(duplicates, NAS, 99, ONE, now=101)  # starts a window
    for number in range(100, 109):
        note(duplicates, NAS, number, ONE, now=102)
    assert note(duplicates, NAS, 99, ONE, now=103) == (first, False)
    note(duplicates, NAS, 110, ONE, now=104)  # starts another one
    assert note(duplicates, NAS, 0, ONE, now=105)[1]

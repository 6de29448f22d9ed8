"""Duplicate detection (RFC 5080 section 2.2.2), in invented time."""

from sallyport.radius.duplicates import Duplicates

NAS = ("192.0.2.1", 50000)
ONE, TWO = b"1" * 16, b"2" * 16


def test_a_request_is_new_once() -> None:
    """The same source, identifier and authenticator is a duplicate while it has no answer."""
    duplicates = Duplicates(15)
    first, is_new = duplicates.note(NAS, 1, ONE, now=0)
    again, is_new_again = duplicates.note(NAS, 1, ONE, now=1)
    assert (is_new, is_new_again, again is first, first.answer) == (True, False, True, None)


def test_an_answered_request_has_its_octets() -> None:
    """A duplicate of an answered request finds the answer, for at least one window and at most two."""
    duplicates = Duplicates(15)
    entry, _ = duplicates.note(NAS, 1, ONE, now=0)
    entry.answer = b"accept"
    assert duplicates.note(NAS, 1, ONE, now=14.9)[0].answer == b"accept"
    assert duplicates.note(NAS, 1, ONE, now=29.9)[0].answer == b"accept"
    assert duplicates.note(NAS, 1, ONE, now=30.1)[1]


def test_sources_and_identifiers_are_told_apart() -> None:
    """Another port, address or identifier is another request."""
    duplicates = Duplicates(15)
    duplicates.note(NAS, 1, ONE, now=0)
    assert duplicates.note((NAS[0], 50001), 1, ONE, now=0)[1]
    assert duplicates.note(("192.0.2.2", NAS[1]), 1, ONE, now=0)[1]
    assert duplicates.note(NAS, 2, ONE, now=0)[1]


def test_a_new_authenticator_replaces_the_old_request() -> None:
    """The same source and identifier with a new authenticator is new, and the old one is told that nobody waits."""
    duplicates = Duplicates(15)
    old, _ = duplicates.note(NAS, 1, ONE, now=0)
    new, is_new = duplicates.note(NAS, 1, TWO, now=1)
    assert (is_new, old.replaced, new.replaced) == (True, True, False)
    assert duplicates.note(NAS, 1, ONE, now=2)[1]


def test_a_forgotten_request_is_new_again() -> None:
    """A request that got no answer may be tried anew; forgetting it does not touch the one that replaced it."""
    duplicates = Duplicates(15)
    old, _ = duplicates.note(NAS, 1, ONE, now=0)
    duplicates.forget(old)
    new, is_new = duplicates.note(NAS, 1, ONE, now=1)
    duplicates.forget(old)
    assert is_new
    assert duplicates.note(NAS, 1, ONE, now=2)[0] is new


def test_a_parked_request_is_known_for_as_long_as_it_waits() -> None:
    """A login that waits for minutes is not started twice, and its answer is known afterwards."""
    duplicates = Duplicates(15)
    entry, _ = duplicates.note(NAS, 1, ONE, now=0)
    duplicates.park(entry)
    for now in (20, 40, 60, 80):
        assert duplicates.note(NAS, 1, ONE, now=now) == (entry, False)
    entry.answer = b"accept"
    duplicates.unpark(entry, now=81)
    assert duplicates.note(NAS, 1, ONE, now=94)[0].answer == b"accept"
    assert duplicates.note(NAS, 1, ONE, now=200)[1]


def test_a_flood_is_bounded() -> None:
    """However many sources send, no more than two tables of the bound are kept."""
    duplicates = Duplicates(15, max_entries=100)
    for port in range(10_000):
        duplicates.note(("192.0.2.1", port), 1, ONE, now=1)
    assert len(duplicates) <= 200

"""A device's posture: counts of its logins, and times that are measured while it waits."""

import pytest

from sallyport.base.clock import SECOND
from sallyport.inventory.devices.device import QUIET_US, UNANSWERED, DeviceRow, Posture
from sallyport.radius.duplicates import Entry
from tests.areas import Areas
from tests.inventory.devices.conftest import Seen
from tests.packets import access_request, attributes, opened

DAY = 86_400 * SECOND


def entry(*arrivals: float) -> Entry:
    """Return a request that was received at these times, in seconds."""
    known = Entry((("192.0.2.1", 1), 0), bytes(16), arrivals[0])
    for at in arrivals[1:]:
        known.again(at)
    return known


def row(
    *, signed: int = 0, unsigned: int = 0, last_unsigned: int | None = None, challenges: int = 0, answers: int = 0
) -> DeviceRow:
    """Return a stored device with these counts."""
    return DeviceRow(
        *(1, 1, "192.0.2.1", "192.0.2.1", "gate", "gate", "Unknown", "", "Unknown", "{}", "Unknown", 0, 0, 0, 1),
        *(signed, unsigned, 0, last_unsigned, challenges, answers, None, None),
    )


@pytest.mark.parametrize(
    ("arrivals", "answered", "retransmit_ms", "give_up_ms"),
    [
        ((0,), 60, None, None),
        ((0, 5), 6, 5000, None),
        ((0, 5, 10), 12, 5000, None),
        ((0, 5, 10), 60, 5000, 15_000),
        ((0, 3, 9), 60, 6000, 15_000),
        ((0, 0.5), 3, 500, 1000),
    ],
)
def test_the_retransmission_interval_is_measured(
    arrivals: tuple[float, ...], answered: float, retransmit_ms: int | None, give_up_ms: int | None
) -> None:
    """The interval is the last one. A device gave up if it was silent for clearly longer than that; one that never
    retransmits gives no measurement."""
    posture = Posture()
    posture.measure(entry(*arrivals), answered)
    assert (posture.retransmit_ms, posture.give_up_ms) == (retransmit_ms, give_up_ms)


def test_a_retransmission_may_have_a_new_identifier() -> None:
    """A device that repeats with another identifier is measured from its first packet."""
    first, second = entry(0), entry(5)
    second.follows(first)
    second.again(10)
    posture = Posture()
    posture.measure(second, 60)
    assert (posture.retransmit_ms, posture.give_up_ms) == (5000, 15_000)


def test_flushed_counts_are_counted_once() -> None:
    """`take` returns the counts and resets them; `put_back` adds counts that could not be written. Measurements
    stay."""
    posture = Posture(retransmit_ms=5000)
    signed, bare = opened(access_request(b"")), opened(access_request(attributes(PROXY_STATE=b"1"), signed=False))
    posture.count(signed, 1)
    posture.count(bare, 2)
    taken = posture.take()
    assert (taken.signed, taken.unsigned, taken.unsigned_proxied, taken.last_unsigned) == (1, 1, 1, 2)
    assert (posture.signed, posture.unsigned, posture.retransmit_ms) == (0, 0, 5000)
    posture.count(signed, 3)
    posture.put_back(taken)
    assert (posture.signed, posture.unsigned, posture.unsigned_proxied) == (2, 1, 1)


def test_when_signatures_can_be_required() -> None:
    """Signatures can be required of a device that signs and has sent no unsigned packet for a week."""
    now = 100 * DAY
    assert not row().safe_to_require(now)
    assert row(signed=1).safe_to_require(now)
    assert not row(signed=9, unsigned=1, last_unsigned=now - QUIET_US + 1).safe_to_require(now)
    assert row(signed=9, unsigned=1, last_unsigned=now - QUIET_US - 1).safe_to_require(now)
    assert not row(unsigned=1, last_unsigned=0).safe_to_require(now)
    assert [row(signed=3, unsigned=1).signed_share, row().signed_share] == [0.75, None]


def test_whether_a_device_shows_challenges() -> None:
    """A device shows challenges if it answered one. It does not if several had no answer. Otherwise it is unknown."""
    assert row(challenges=9, answers=1).challenge_support == "yes"
    assert row(challenges=UNANSWERED).challenge_support == "no"
    assert row(challenges=UNANSWERED - 1).challenge_support == "unknown"


async def test_a_posture_is_stored(areas: Areas, seen: Seen) -> None:
    """Flushes add to the stored counts. The posture is read after a restart and deleted with its device."""
    device = await seen.device("gate")
    for _ in range(2):
        device.posture.signed, device.posture.give_up_ms = 2, 15_000
        device.posture.challenge_answers = 1
        areas.devices.sightings.touch(device)
        await areas.devices.flush()
    found = await areas.devices.one(areas.domain, device.id or 0)
    assert (found.signed, found.give_up_ms, found.challenge_support) == (4, 15_000, "yes")
    areas.devices.sightings.forget_all()
    again = await seen.device("gate")
    assert (again.posture.give_up_ms, again.posture.takes_challenges) == (15_000, True)
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="admin")
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from device_posture")) == 0


async def test_a_late_measurement_does_not_restore_a_deleted_device(areas: Areas, seen: Seen) -> None:
    """A login may wait during the deletion of its device."""
    device = await seen.device("gate")
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="admin")
    device.posture.give_up_ms = 15_000
    areas.devices.sightings.touch(device)
    await areas.devices.flush()
    assert await seen.rows() == []

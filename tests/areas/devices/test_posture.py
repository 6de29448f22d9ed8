"""A device's posture: counts of its logins, and times that are measured while it waits."""

import pytest

from sallyport.areas.devices.device import Device, Posture
from sallyport.areas.devices.rows import LAPSED, QUIET_US, UNANSWERED, DeviceRow
from sallyport.base.clock import SECOND
from sallyport.base.errors import NotFound
from sallyport.radius.duplicates import Entry
from tests.areas import Areas
from tests.areas.devices.conftest import Seen
from tests.packets import access_request, attributes, opened

DAY = 86_400 * SECOND


def entry(*arrivals: float) -> Entry:
    """Return a request that was received at these times, in seconds."""
    known = Entry((("192.0.2.1", 1), 0), bytes(16), arrivals[0])
    for at in arrivals[1:]:
        known.again(at)
    return known


def row(*, signed: int = 0, unsigned: int = 0, last_unsigned: int | None = None) -> DeviceRow:
    """Return a stored device with these counts."""
    return DeviceRow(
        *(1, 1, "192.0.2.1", "192.0.2.1", "gate", "gate", "Unknown", "", "Unknown", "{}", "Unknown", 0, 0, 0, 1),
        *(signed, unsigned, 0, last_unsigned, 0, 0, 0, "", "", "", ""),
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
    posture.measure(entry(*arrivals), answered, DAY)
    assert (posture.retransmit_ms, posture.give_up_ms) == (retransmit_ms, give_up_ms)


def test_a_retransmission_may_have_a_new_identifier() -> None:
    """A device that repeats with another identifier is measured from its first packet."""
    first, second = entry(0), entry(5)
    second.follows(first)
    second.again(10)
    posture = Posture()
    posture.measure(second, 60, DAY)
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


def challenged(number: int, *, answered_at: int = 0) -> Posture:
    """Return the posture of a device with `number` unanswered challenges on day 40."""
    posture = Posture()
    if answered_at:
        posture.count_answer(answered_at)
    for _ in range(number):
        posture.count_challenge(40 * DAY)
    return posture


@pytest.mark.parametrize(
    ("posture", "support"),
    [
        (challenged(0), "unknown"),
        (challenged(UNANSWERED - 1), "unknown"),
        (challenged(UNANSWERED), "no"),
        (challenged(LAPSED - 1, answered_at=39 * DAY), "yes"),
        (challenged(LAPSED, answered_at=39 * DAY), "no"),
        (challenged(UNANSWERED, answered_at=9 * DAY), "no"),
    ],
)
def test_whether_a_device_shows_challenges(posture: Posture, support: str) -> None:
    """A device shows challenges if it answered one within a month. It does not if several had no answer."""
    assert posture.challenge_support(40 * DAY) == support


def test_an_answer_shows_that_a_device_shows_challenges() -> None:
    """One answer is newer evidence than any number of challenges without an answer."""
    posture = challenged(LAPSED)
    posture.count_answer(40 * DAY)
    assert posture.challenge_support(40 * DAY) == "yes"


@pytest.mark.parametrize("answered_at", [0, 40 * DAY])
def test_challenge_support_is_forgotten(answered_at: int) -> None:
    """A month after the last challenge, it is unknown again, and old challenges do not count any more."""
    posture, later = challenged(UNANSWERED, answered_at=answered_at), 70 * DAY + 1
    assert posture.challenge_support(later) == "unknown"
    posture.count_challenge(later)
    assert (posture.challenge_support(later), posture.unanswered) == ("unknown", 1)


def impatient(at: int = DAY) -> Posture:
    """Return the posture of a device that gave up after two tries of 3 seconds."""
    posture = Posture()
    posture.measure(entry(0, 3), 60, at)
    assert posture.timeout_ms(at) == 6000
    return posture


def test_a_device_that_does_not_retransmit_has_another_timeout() -> None:
    """If the retransmission does not come when it is due, the device has another configuration. Before that, nothing
    is known."""
    posture = impatient()
    posture.measure(entry(0), 3.9, DAY)
    assert posture.timeout_ms(DAY) == 6000
    posture.measure(entry(0), 4.8, DAY)
    assert (posture.retransmit_ms, posture.give_up_ms, posture.timeout_ms(DAY)) == (None, None, None)


def test_a_device_that_still_retransmits_has_another_timeout() -> None:
    """A retransmission after the learned timeout contradicts it; one before does not."""
    posture = impatient()
    posture.measure(entry(0, 3), 4, DAY)
    assert posture.timeout_ms(DAY) == 6000
    posture.measure(entry(0, 3, 6), 7, DAY)
    assert (posture.retransmit_ms, posture.timeout_ms(DAY)) == (3000, None)


def test_a_longer_timeout_replaces_the_learned_one() -> None:
    """If the device gives up later than before, the later time is kept. An earlier time may come from a user that
    cancels."""
    posture = impatient()
    posture.measure(entry(0, 3, 6, 9), 60, DAY)
    assert posture.timeout_ms(DAY) == 12_000
    posture.measure(entry(0, 3), 60, DAY)
    assert posture.timeout_ms(DAY) == 12_000


def test_a_timeout_is_forgotten_unless_it_is_confirmed() -> None:
    """A timeout is valid for a month after the device last gave up. A much shorter wait does not confirm it."""
    posture = impatient()
    posture.measure(entry(0, 1), 60, 20 * DAY)
    assert posture.timeout_ms(31 * DAY) == 6000
    assert posture.timeout_ms(31 * DAY + 1) is None
    posture.measure(entry(0, 3), 60, 30 * DAY)
    assert posture.timeout_ms(60 * DAY) == 6000


def test_a_shorter_timeout_replaces_an_old_one() -> None:
    """After a month without confirmation, a shorter timeout is learned."""
    posture = Posture()
    posture.measure(entry(0, 30), 120, DAY)
    posture.measure(entry(0, 3), 60, 40 * DAY)
    assert posture.timeout_ms(40 * DAY) == 6000


async def test_a_posture_is_stored(areas: Areas, seen: Seen) -> None:
    """Flushes add to the stored counts. The posture is read after a restart and deleted with its device."""
    device = await seen.device("gate")
    for _ in range(2):
        device.posture.signed = 2
        device.posture.measure(entry(0, 5, 10), 60, areas.clock())
        device.posture.count_answer(areas.clock())
        areas.devices.sightings.touch(device)
        await areas.devices.flush()
    found = await areas.devices.one(areas.domain, device.id or 0)
    assert (found.signed, found.give_up_ms, found.challenge_support(areas.clock())) == (4, 15_000, "yes")
    areas.devices.sightings.forget_all()
    again = await seen.device("gate")
    assert (again.posture.give_up_ms, again.posture.challenge_support(areas.clock())) == (15_000, "yes")
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="admin")
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from device_posture")) == 0


async def test_a_late_measurement_does_not_restore_a_deleted_device(areas: Areas, seen: Seen) -> None:
    """A login may wait during the deletion of its device."""
    device = await seen.device("gate")
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="admin")
    device.posture.measure(entry(0, 5, 10), 60, areas.clock())
    areas.devices.sightings.touch(device)
    await areas.devices.flush()
    assert await seen.rows() == []


async def reset(areas: Areas, device: Device) -> int:
    """Reset a device, as ResetDevice does."""
    return await areas.devices.reset(areas.domain, device_ids=[device.id or 0], addresses=None)


async def test_a_reset_forgets_what_was_learned(areas: Areas, seen: Seen) -> None:
    """A reset forgets timeouts, challenge support and signatures, in memory and in the store."""
    device = await seen.device("gate")
    device.posture.measure(entry(0, 3), 60, areas.clock())
    for _ in range(UNANSWERED):
        device.posture.count_challenge(areas.clock())
    device.posture.signed = 5
    assert await reset(areas, device) == 1
    for found in (device.posture, await areas.devices.one(areas.domain, device.id or 0)):
        assert (found.retransmit_ms, found.timeout_ms(areas.clock()), found.signed) == (None, None, 0)
        assert found.challenge_support(areas.clock()) == "unknown"


async def test_a_reset_holds(areas: Areas, seen: Seen) -> None:
    """Neither a later flush nor a restart brings the learned values back."""
    device = await seen.device("gate")
    device.posture.measure(entry(0, 3), 60, areas.clock())
    await reset(areas, device)
    areas.devices.sightings.touch(device)
    await areas.devices.flush()
    areas.devices.sightings.forget_all()
    assert (await seen.device("gate")).posture.timeout_ms(areas.clock()) is None


async def test_a_reset_reaches_another_node(areas: Areas, seen: Seen) -> None:
    """A node that still has the old values takes the newer row at its next flush, and does not overwrite it."""
    device = await seen.device("gate")
    device.posture.measure(entry(0, 3), 60, areas.clock())
    await areas.devices.flush()
    known = device.posture
    areas.clock.pass_by(1)
    await reset(areas, device)
    device.posture = known  # as the memory of another node
    areas.devices.sightings.touch(device)
    await areas.devices.flush()
    assert device.posture.timeout_ms(areas.clock()) is None
    assert (await areas.devices.one(areas.domain, device.id or 0)).timeout_ms(areas.clock()) is None


async def test_a_reset_of_an_unknown_device(areas: Areas, seen: Seen) -> None:
    """If one of the devices does not exist, none is reset."""
    device = await seen.device("gate")
    device.posture.measure(entry(0, 3), 60, areas.clock())
    with pytest.raises(NotFound, match="device not found"):
        await areas.devices.reset(areas.domain, device_ids=[device.id or 0, 999], addresses=None)
    assert device.posture.timeout_ms(areas.clock()) == 6000

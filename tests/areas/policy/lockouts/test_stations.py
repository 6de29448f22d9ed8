"""Tests of stations, which are locked out like users. A NAS is never locked out."""

import pytest

from sallyport.areas.login.login import Reason
from sallyport.areas.policy.lockouts.stations import SharedStations
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.lockouts.guesses import PHONE, STATION_LOCKED, TABLET, guess, log_in, stored
from tests.packets import attributes

NAS_ITSELF = {
    "no station": {"NAS_IDENTIFIER": b"vpn"},
    "an empty one": {"CALLING_STATION_ID": b"", "NAS_IDENTIFIER": b"vpn"},
    "blanks": {"CALLING_STATION_ID": b"  ", "NAS_IDENTIFIER": b"vpn"},
    "its address": {"CALLING_STATION_ID": b"10.0.0.9", "NAS_IP_ADDRESS": bytes((10, 0, 0, 9))},
    "its IPv6 address": {"CALLING_STATION_ID": b"::1", "NAS_IPV6_ADDRESS": bytes(15) + b"\1"},
    "its name": {"CALLING_STATION_ID": b"VPN", "NAS_IDENTIFIER": b"vpn"},
    "the packet's source": {"CALLING_STATION_ID": b"192.0.2.1", "NAS_IDENTIFIER": b"vpn"},
    "its MAC address": {"CALLING_STATION_ID": b"0200.0000.0009", "CALLED_STATION_ID": b"02-00-00-00-00-09:guests"},
}


async def test_ten_failures_lock_a_station(listener: FakeListener) -> None:
    """If ten users each fail once at the same station, the station is locked for all users.

    Another station of the same device is not locked.
    """
    await log_in(listener, "ann", "hello", TABLET)
    for number in range(10):
        assert await log_in(listener, f"user{number}", guess(), PHONE) is Reason.UNKNOWN_USER
    assert await log_in(listener, "ann", "hello", PHONE) is STATION_LOCKED
    assert await log_in(listener, "ann", "hello", TABLET) is Reason.NONE
    assert await log_in(listener, "ann", "hello") is Reason.NONE
    assert await stored(listener.areas) == [("station", "02-00-00-00-00-01", 10)]


async def test_a_success_resets_the_count_of_a_station(listener: FakeListener) -> None:
    """A successful login of any user at the station resets its count."""
    await log_in(listener, "ann", "hello", TABLET)
    for number in range(9):
        await log_in(listener, f"user{number}", guess(), PHONE)
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE
    await log_in(listener, "another", guess(), PHONE)
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE


@pytest.mark.parametrize("fields", NAS_ITSELF.values(), ids=NAS_ITSELF)
async def test_a_nas_is_never_locked(listener: FakeListener, fields: dict[str, bytes]) -> None:
    """If the station is the NAS itself, failures with any names do not reject a user with the right password, although
    the NAS has another station too."""
    other = {**fields, "CALLING_STATION_ID": b"02-00-00-00-00-02"}
    assert await log_in(listener, "ann", "hello", attributes(**other)) is Reason.NONE
    for number in range(12):
        await log_in(listener, f"user{number}", guess(), attributes(**fields))
    assert await log_in(listener, "ann", "hello", attributes(**fields)) is Reason.NONE
    assert await stored(listener.areas) == []


async def test_the_only_station_of_a_nas_is_not_locked(listener: FakeListener) -> None:
    """If a NAS sends only one station, it may send the same value for all stations, so this station is not locked.

    After a login from another station, the next failure locks it.
    """
    for number in range(15):
        await log_in(listener, f"user{number}", guess(), PHONE)
    assert await stored(listener.areas) == []
    await log_in(listener, "ann", "hello", TABLET)
    assert await log_in(listener, "another", guess(), PHONE) is Reason.UNKNOWN_USER
    assert await log_in(listener, "ann", "hello", PHONE) is STATION_LOCKED
    assert await log_in(listener, "ann", "hello", TABLET) is Reason.NONE


async def test_a_shared_station_is_not_locked(listener: FakeListener) -> None:
    """A station at which three users log in within an hour counts as shared and is not locked, even if the NAS has
    other stations. A user who logs in again takes the place of no other user."""
    for user in ("bob", "eve"):
        await listener.areas.add_user(listener.areas.domain, user, b"hello")
    await log_in(listener, "ann", "hello", TABLET)
    await log_in(listener)  # a failure: from now on successes are counted
    for user in ("ann", "bob", "eve", "eve"):
        await log_in(listener, user, "hello", PHONE)
    for number in range(20):
        await log_in(listener, f"user{number}", guess(), PHONE)
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE
    listener.areas.clock.pass_by(3601)
    for number in range(10):
        await log_in(listener, f"user{number}", guess(), PHONE)
    assert await log_in(listener, "ann", "hello", PHONE) is STATION_LOCKED


def test_another_tenant_does_not_evict_a_shared_station() -> None:
    """A shared station is remembered, however many stations of another tenant are used."""
    shared = SharedStations(max_stations=10)
    for user in ("ann", "bob", "eve"):
        shared.note((1, b"phone"), 1, user, 0)
    for number in range(100):
        shared.note((2, b"phone %d" % number), 2, "mallory", number)
    assert shared.is_shared((1, b"phone"), 1)

"""The whole service in simulated time: a clock that is set, and weeks with a change of the time in them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from trio.testing import MockClock

from sallyport.areas.directory.schedules.schedule import Timing
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.base.clock import SECOND, from_us
from tests.service.simulated import Simulated, simulated

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
BERLIN = ZoneInfo("Europe/Berlin")


async def lock_out(service: Simulated) -> None:
    """Lock bob out."""
    for guess in range(10):
        assert not await service.logs_in("bob", f"wrong {guess}")
    assert not await service.logs_in("bob")


@pytest.mark.parametrize("step", [HOUR, -HOUR, -7 * DAY], ids=["forward", "back", "a week back"])
async def test_a_clock_that_is_set_keeps_every_promise(tmp_path: Path, mock_clock: MockClock, step: float) -> None:
    """The clock of the day is set while the service runs, and set right again an hour later.

    Logins are answered and stored, a retransmission gets the same octets, a lock-out ends after its time, a directory
    is read at its times, and expired answers are deleted.
    """
    async with simulated(tmp_path, datetime(2026, 6, 1, 12, tzinfo=UTC), mock_clock) as service:
        await service.schedule(Timing(every_minutes=15))
        for each in (step, -step):
            await lock_out(service)
            request = service.request("ann", "hello")
            answer = await service.send(request)
            events, read = await service.count("events"), len(await service.readings())
            service.clock.pass_by(each)
            assert await service.send(request) == answer
            await service.pass_by(10)
            assert answer in [kept.reply for kept in await service.areas.journal.recent()]
            assert await service.logs_in("ann")
            assert await service.count("events") == events + 1
            await service.pass_by(16 * MINUTE)
            assert await service.logs_in("bob")
            if not service.areas.store.is_shared:  # else the clock of one node does not change the rows of all
                assert await service.areas.lockouts.page(service.areas.domain, "", offset=0, limit=9) == ([], 0)
            await service.pass_by(45 * MINUTE)
            assert 1 <= len(await service.readings()) - read <= 6
            assert await service.count("answers") == 0


async def test_a_clock_that_is_90_days_ahead_deletes_nothing(tmp_path: Path, mock_clock: MockClock) -> None:
    """The clock of the day is 90 days ahead for two hours. Events, the audit trail and a valid enrolment link are kept.
    They are deleted after their days when the clock is right."""
    days = {"event_days": 3, "audit_days": 3, "enrolment_link_hours": 6}
    async with simulated(tmp_path, datetime(2026, 6, 1, 12, tzinfo=UTC), mock_clock, **days) as service:
        assert await service.logs_in("ann")
        trail, links = await service.count("audit_trail"), service.areas.app.me.links
        secret, _ = await links.make(Person(service.areas.domain, "ann"))
        service.clock.pass_by(90 * DAY)
        await service.pass_by(2 * HOUR, step_s=20 * MINUTE)
        assert await service.logs_in("ann")
        service.clock.pass_by(-90 * DAY)
        await service.pass_by(2 * HOUR, step_s=20 * MINUTE)
        assert await service.count("events") == 2
        assert await service.count("audit_trail") >= trail > 0
        assert await links.open(secret, "browser") is not None
        await service.pass_by(4 * DAY, step_s=HOUR)
        assert await service.count("events") == 1  # the one of the time ahead
        assert await service.count("audit_trail") == 0


@pytest.mark.parametrize(
    "first_night",
    [
        pytest.param(datetime(2026, 10, 24, 2, 30, tzinfo=BERLIN), id="the end of daylight saving time"),
        pytest.param(datetime(2026, 3, 28, 2, 30, tzinfo=BERLIN), id="the begin of daylight saving time"),
        pytest.param(datetime(2026, 12, 30, 2, 30, tzinfo=BERLIN), id="the end of a year"),
    ],
)
async def test_days(tmp_path: Path, mock_clock: MockClock, first_night: datetime) -> None:
    """Over four days with a change of the time, logins are answered each hour, a directory is read once each night, a
    user is locked out each day for its time, and events are deleted after their days."""
    begin = first_night.astimezone(UTC) - timedelta(hours=3)
    async with simulated(tmp_path, begin, mock_clock, event_days=2) as service:
        await service.schedule(Timing(times=(150,), zone=BERLIN.key))
        for hour in range(96):
            assert await service.logs_in("ann")
            if hour % 24 == 5:
                await lock_out(service)
                await service.pass_by(16 * MINUTE, step_s=4 * MINUTE)
                assert await service.logs_in("bob")
                await service.pass_by(44 * MINUTE, step_s=22 * MINUTE)
            else:
                await service.pass_by(HOUR, step_s=30 * MINUTE)
        oldest = await service.areas.store.read(lambda tx: tx.value(int, "select min(at) from events") or 0)
        # a busy machine needs several jumps of the time for one purge
        assert 2 * DAY - 2 * HOUR < (service.clock() - oldest) / SECOND < 3 * DAY
        nights = [from_us(at).astimezone(BERLIN).date() for at in await service.readings()]
        assert nights == [first_night.date() + timedelta(days=day) for day in range(4)]
        assert await service.count("answers") <= 1


async def test_certificates_of_the_installation_expire(tmp_path: Path, mock_clock: MockClock) -> None:
    """`sallyport cert` uses the clock of the service: a certificate expires, is listed as expired, and is valid again
    after it was renewed."""
    async with simulated(tmp_path, datetime(2026, 6, 1, 12, tzinfo=UTC), mock_clock) as service:
        run = service.areas.app.certificate_files.commands()

        async def server() -> tuple[str, int]:
            listed = json.loads(json.dumps(await run["cert.list"]({})()))
            newest = max((each for each in listed if each["use"] == "server"), key=lambda each: each["days"])
            return newest["state"], newest["days"]

        await run["cert.init"]({"ca_name": "Tests CA", "hosts": ["radius.example.org"]})()
        state, days = await server()
        assert state == "valid" and days > 300
        service.clock.pass_by((days + 2) * DAY)
        assert (await server())[0] == "expired"
        await run["cert.renew"]({})()
        assert await server() == ("valid", days)

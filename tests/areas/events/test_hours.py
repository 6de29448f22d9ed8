"""The counts of the logins by hour."""

from pathlib import Path

import trio

from sallyport.areas.events.hours import DAY, HOUR, SETTLED, Hours, _counted
from sallyport.base.errors import StoreError
from sallyport.store.model import T, Work
from tests.areas import Areas, new_database
from tests.nodes.conftest import insert_events
from tests.plans import plans


class Broken:
    """A store whose searches fail, and count how many were tried."""

    tried = 0

    async def search(self, work: Work[T]) -> T:
        """Raise StoreError."""
        await trio.lowlevel.checkpoint()
        self.tried += 1
        raise StoreError("the search took longer than 10 s")


async def counted(hours: Hours, *domains: int) -> list[int | None]:
    """Return the accepted logins of each hour, the newest first."""
    return [each.answered("accept") for each in reversed(await hours.last_day(1, domains))]


def test_an_hour_is_read_by_the_index(tmp_path: Path) -> None:
    """Other hours and other domains are not read, so the time for an hour depends only on its own logins."""
    path = tmp_path / "s.db"
    path.write_bytes(new_database())
    found = plans(path, lambda tx: _counted(tx, (3,), HOUR))
    assert any("events_order (domain_id=? AND at>? AND at<?)" in plan for plan in found)
    assert not [plan for plan in found if "SCAN" in plan]


async def test_an_hour_is_kept_when_no_event_can_be_added_any_more(areas: Areas) -> None:
    """A login that has waited for its second factor is stored after the end of its hour. Until then the hour is read
    again."""
    now = areas.clock.now // HOUR * HOUR + HOUR
    hours = Hours(areas.store, lambda: now)
    await areas.store.write(lambda tx: insert_events(tx, "ann", at=now - 1, domain_id=areas.domain))
    assert (await counted(hours, areas.domain))[:3] == [0, 1, 0]
    await areas.store.write(lambda tx: insert_events(tx, "bob", at=now - 2, domain_id=areas.domain))
    now += SETTLED
    assert (await counted(hours, areas.domain))[:3] == [0, 2, 0]
    await areas.store.write(lambda tx: insert_events(tx, "late", at=now - SETTLED - 3, domain_id=areas.domain))
    now += SETTLED
    assert (await counted(hours, areas.domain))[:3] == [0, 2, 0]


async def test_other_domains_are_counted_for_themselves(areas: Areas) -> None:
    """The counts in memory are those of the domains that were asked for."""
    hours = Hours(areas.store, areas.clock)
    at = areas.clock.now
    for domain in (areas.domain, areas.domain + 1):
        await areas.store.write(lambda tx, domain=domain: insert_events(tx, "ann", at=at, domain_id=domain))  # type: ignore[misc]
    assert (await counted(hours, areas.domain))[0] == 1
    assert (await counted(hours, areas.domain, areas.domain + 1))[0] == 2
    assert (await counted(hours))[0] == 0


async def test_a_failing_store_leaves_hours_uncounted(areas: Areas) -> None:
    """If a search takes too long, the page is shown without this hour."""
    broken = Broken()
    assert await counted(Hours(broken, areas.clock), areas.domain) == [None] * DAY  # type: ignore[arg-type]
    assert broken.tried == DAY

"""Tests of the ages of directory data: the metrics, the log events, and the shortest interval between two readings."""

import pytest
from structlog.testing import capture_logs

from sallyport.areas.directory import repo
from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.schedules.bodies import is_too_old
from sallyport.areas.directory.schedules.schedule import Timing
from sallyport.areas.domains.repo import Update
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from tests.areas import Areas

HOUR = 3600
START = 1_767_225_600
DATA = "sallyport_directory_data_timestamp_seconds"
EXPIRY = "sallyport_directory_data_expiry_timestamp_seconds"


async def add(areas: Areas, name: str, kind: DirectoryKind, *, read: bool = True) -> None:
    """Add a directory that was read now, or never."""
    await areas.directory.directories.save([(areas.domain, DirectoryConfiguration(name, kind))])
    found = next(each for each in await areas.directory.directories.of_domain(areas.domain) if each.name == name)
    if read:
        await areas.store.write(lambda tx: repo.set_read_at(tx, found.id, areas.clock.now))


def gauge(areas: Areas, name: str) -> float | None:
    """Return the value of a metric for the domain."""
    return areas.registry.get_sample_value(name, {"domain": str(areas.domain)})


async def test_the_oldest_data_of_a_domain_are_exported(areas: Areas) -> None:
    """An LDAP directory does not count, and a directory that was never read is as old as its settings."""
    await add(areas, "entra", DirectoryKind.GRAPH)
    areas.clock.pass_by(HOUR)
    await add(areas, "okta", DirectoryKind.OKTA, read=False)
    await add(areas, "ldap", DirectoryKind.LDAP, read=False)
    await areas.directory.ages.look()
    assert gauge(areas, DATA) == START
    assert gauge(areas, EXPIRY) == START + 24 * HOUR


async def test_data_that_become_too_old_are_logged_once(areas: Areas) -> None:
    await areas.domains.update(areas.domain, Update(settings={"directory_max_age_h": 2}))
    await add(areas, "entra", DirectoryKind.GRAPH)
    with capture_logs() as logged:
        for hours in (1, 2, 3):
            areas.clock.pass_by(hours * HOUR)
            await areas.directory.ages.look()
    assert logged == [
        {"event": "directory_data_too_old", "log_level": "warning", "domain": "corp", "directory": "entra", "hours": 3}
    ]


@pytest.mark.parametrize(
    ("kind", "read_at", "expected"),
    [
        ("graph", "2025-12-31T21:59:59.000000Z", True), ("okta", "2025-12-31T22:00:00.000000Z", False),
        ("okta", "", True), ("ldap", "2025-12-01T00:00:00.000000Z", False), ("ldap", "", False),
    ],
)  # fmt: skip
def test_only_data_of_cloud_directories_become_too_old(kind: str, read_at: str, expected: bool) -> None:
    """A directory that was never read has no data for logins."""
    assert is_too_old({"kind": kind, "readAt": read_at}, 2, START * SECOND) is expected


async def test_only_cloud_directories_are_read_every_two_minutes(areas: Areas) -> None:
    """An LDAP directory lists all its entries at each reading, so it is read less often."""
    await add(areas, "entra", DirectoryKind.GRAPH)
    await add(areas, "ldap", DirectoryKind.LDAP)
    assert await areas.directory.schedules.set(areas.domain, "entra", Timing(2)) > areas.clock.now
    with pytest.raises(Invalid, match="everyMinutes"):
        await areas.directory.schedules.set(areas.domain, "ldap", Timing(2))

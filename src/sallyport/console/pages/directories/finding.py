"""Functions that find the directories of a domain and their schedules."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.pages.reading import every, of, one
from sallyport.console.table import Filter
from sallyport.console.visit import Visit
from sallyport.shell.command import entries

SEARCH: Final = (Filter("search", "Name"),)


async def first_directories(visit: Visit, domain: Domain, most: int) -> list[Row]:
    """Return the first directories of a domain, at most `most` of them."""
    return entries((await visit.call("/api/v1/directory/list", {"pageSize": most}, domain=domain.id))["directories"])


async def all_directories(visit: Visit, domain: Domain) -> list[Row]:
    """Return the directories of a domain."""
    return await every(visit, "/api/v1/directory/list", "directories", {}, domain=domain.id)


async def directory_at(visit: Visit, domain: Domain) -> Row:
    """Return the directory whose id is in the path. Raises NotFound."""
    return one(await all_directories(visit, domain), "directoryId", visit.at["directory"], "directory")


async def schedules_of(visit: Visit, domain: Domain) -> list[Row]:
    """Return the schedules of a domain's directories."""
    return entries((await visit.call("/api/v1/directory/listSchedules", domain=domain.id))["schedules"])


async def schedule_of(visit: Visit, domain: Domain, directory: Row) -> Row | None:
    """Return the schedule of a directory; None if it has no schedule."""
    found = await schedules_of(visit, domain)
    return next((each for each in found if each["directoryName"] == directory["directoryName"]), None)


def address_of(directory: Row, domain: Domain) -> str:
    """Return the address of the page of a directory."""
    return of(f"/directories/{directory['directoryId']}", domain)

"""What the command line asks: bypass.add, bypass.list, bypass.remove."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.policy.bypass.bodies import MOST, Stations
from sallyport.policy.bypass.operations import entry
from sallyport.policy.bypass.service import Bypass
from sallyport.web.scope import Text


class AddStations(Arguments):
    """Stations for the list of a domain (name or domainId)."""

    domain: str
    stations: Stations
    name: Text = ""


class RemoveStations(Arguments):
    """Some of a domain's, all or none."""

    domain: str
    stations: Stations


class ListStations(Arguments):
    """Of one domain, a page at a time."""

    domain: str
    search: Text = ""
    offset: int = Field(default=0, ge=0)


def commands(service: Bypass, find_domain: Callable[[str], int]) -> dict[str, Command]:
    """The commands of this slice by name. find_domain: the id of a domain by its name or id (NotFound)."""

    async def add(wanted: AddStations) -> JSON:
        return await service.add(find_domain(wanted.domain), wanted.stations, wanted.name)

    async def remove(wanted: RemoveStations) -> JSON:
        return await service.delete(find_domain(wanted.domain), wanted.stations)

    async def listing(wanted: ListStations) -> JSON:
        rows, _ = await service.page(find_domain(wanted.domain), wanted.search, offset=wanted.offset, limit=MOST)
        return [entry(row) for row in rows]

    return {
        "bypass.add": command(AddStations, add),
        "bypass.list": command(ListStations, listing),
        "bypass.remove": command(RemoveStations, remove),
    }

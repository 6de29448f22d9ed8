"""What the command line asks: directory.schedule, directory.schedules."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.directory.schedules.model import Every, FullEvery, Times, Zone, timing
from sallyport.directory.schedules.service import Schedules, clock_times, timing_of
from sallyport.web.scope import Name

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""


class OfDomain(Arguments):
    """Of one domain."""

    domain: str


class Set(OfDomain):
    """A directory's schedule, as the operation `directory/setSchedule` takes it."""

    name: Name
    every: Every = 0
    times: Times = Field(default_factory=list)
    zone: Zone = "UTC"
    full_every: FullEvery = 24


def commands(schedules: Schedules, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def set_schedule(wanted: Set) -> JSON:
        said = timing(wanted.every, wanted.times, wanted.zone, wanted.full_every)
        next_at = await schedules.set(find_domain(wanted.domain), wanted.name, said)
        return iso(next_at) if next_at else ""

    async def listing(wanted: OfDomain) -> JSON:
        return [
            {
                "directory": each.schedule.directory_name,
                "every": each.schedule.every_minutes or "",
                "times": ", ".join(clock_times(timing_of(each.schedule).times)),
                "zone": each.schedule.zone,
                "full_every": each.schedule.full_every,
                "next": iso(each.schedule.next_at),
                "last": each.last.state if each.last is not None else "",
            }
            for each in await schedules.of_domain(find_domain(wanted.domain))
        ]

    return {
        "directory.schedule": command(Set, set_schedule),
        "directory.schedules": command(OfDomain, listing),
    }

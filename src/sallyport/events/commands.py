"""The command of events: event.export, which reads them oldest first."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import Arguments, Command, command
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.domains.domain import Domain
from sallyport.events.operations import entry
from sallyport.events.repo import FOREVER, Stretch
from sallyport.events.service import Events, parse_cursor

PAGE = 200
"""Events in an answer, which takes 2 ms of the event loop."""


class ExportEvents(Arguments):
    """Events of a domain (name or domainId), from a time up to and without another. cursor: of the page before.
    last_id: of the first page's answer, so that all pages show the same moment."""

    domain: str
    since: Moment = Field(default=0, validation_alias="from")
    until: Moment = Field(default=FOREVER, validation_alias="to")
    cursor: str = ""
    limit: int = Field(default=PAGE, ge=1, le=PAGE)
    last_id: int | None = None


def commands(service: Events, domain: Callable[[str], Domain]) -> dict[str, Command]:
    """The command of this area by name. domain: the one of a name or domainId (NotFound)."""

    async def export(wanted: ExportEvents) -> JSON:
        of = domain(wanted.domain)
        last_id = await service.last_id() if wanted.last_id is None else wanted.last_id
        stretch = Stretch(of.id, last_id, wanted.since, wanted.until, parse_cursor(wanted.cursor), wanted.limit)
        rows, cursor = await service.oldest(stretch)
        return {"events": [entry(row, of.name) for row in rows], "cursor": cursor, "last_id": last_id}

    return {"event.export": command(ExportEvents, export)}

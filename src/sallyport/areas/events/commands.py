"""The command event.export of the control socket, which returns events, oldest first."""

from collections.abc import Callable

from pydantic import Field

from sallyport.areas.domains.domain import Domain
from sallyport.areas.events.event import FOREVER, ExportQuery
from sallyport.areas.events.service import Events, parse_cursor
from sallyport.base.answer import answers
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, Command, command

PAGE = 200
"""Maximum number of events in an answer. Such an answer blocks the event loop for 2 ms."""


class ExportEvents(Arguments):
    """Arguments of event.export.

    domain: the name or the domainId of a domain. since, until: the range of times; `until` is exclusive. cursor: the
    cursor that the previous answer contains. last_id: the `last_id` that the first answer contains. It excludes events
    that were written after the export began.
    """

    domain: str
    since: Moment = Field(default=0, validation_alias="from")
    until: Moment = Field(default=FOREVER, validation_alias="to")
    cursor: str = ""
    limit: int = Field(default=PAGE, ge=1, le=PAGE)
    last_id: int | None = None


def commands(service: Events, domain: Callable[[str], Domain]) -> dict[str, Command]:
    """Return the commands for events by their names.

    domain: a function that returns the domain with a name or domainId, or raises NotFound.
    """

    async def export(wanted: ExportEvents) -> JSON:
        of = domain(wanted.domain)
        last_id = await service.last_id() if wanted.last_id is None else wanted.last_id
        stretch = ExportQuery(of.id, last_id, wanted.since, wanted.until, parse_cursor(wanted.cursor), wanted.limit)
        rows, cursor = await service.oldest(stretch)
        nodes = await service.nodes()
        return {"events": list[JSON](answers(rows, domain=of.name, nodes=nodes)), "cursor": cursor, "last_id": last_id}

    return {"event.export": command(ExportEvents, export)}

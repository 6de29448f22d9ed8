"""What the command line asks: session.list."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import Arguments, Command, NamedDomain, command
from sallyport.base.wire import JSON
from sallyport.inventory.sessions.operations import ValueName, entry
from sallyport.inventory.sessions.repo import FOREVER, SessionQuery
from sallyport.inventory.sessions.service import Sessions

PAGE = 500


class ListSessions(Arguments):
    """domain: its name or domainId. live: the live ones alone. before: the last sessionId of the page before."""

    domain: str
    live: bool = False
    user: str = ""
    before: int = Field(default=FOREVER, le=FOREVER)


def commands(service: Sessions, domain: Callable[[str], NamedDomain], value_name: ValueName) -> dict[str, Command]:
    """The command of this slice by name. domain: the one of a name or domainId (NotFound)."""

    async def listing(wanted: ListSessions) -> JSON:
        of = domain(wanted.domain)
        query = SessionQuery(
            of.id,
            live=wanted.live or None,
            user_name=wanted.user,
            before=wanted.before,
            limit=PAGE,
        )
        rows = await service.newest(query)
        return [{"domain": of.name, **entry(row, value_name)} for row in rows]

    return {"session.list": command(ListSessions, listing)}

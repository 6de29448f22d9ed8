"""The command of sessions: session.domain, since a session is known to people by its id alone."""

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.inventory.sessions.service import Sessions


class DomainOf(Arguments):
    """A session of the installation."""

    session: int


def commands(service: Sessions) -> dict[str, Command]:
    """The command of this slice by name."""

    async def domain(wanted: DomainOf) -> JSON:
        return await service.domain_of(wanted.session)

    return {"session.domain": command(DomainOf, domain)}

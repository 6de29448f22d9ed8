"""What the command line asks: lockout.list and lockout.remove."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.policy.lockouts.model import Kind
from sallyport.policy.lockouts.operations import entry
from sallyport.policy.lockouts.service import Lockouts
from sallyport.web.scope import Name

PAGE = 1000


class ListLockouts(Arguments):
    """Of a domain (name or domainId), a page at a time."""

    domain: str
    offset: int = Field(default=0, ge=0)


class RemoveLockout(Arguments):
    """A user or a station of a domain."""

    domain: str
    kind: Kind
    name: Name


def commands(service: Lockouts, find_domain: Callable[[str], int]) -> dict[str, Command]:
    """The commands of this slice by name. find_domain: the id of a domain by its name or id (NotFound)."""

    async def listing(wanted: ListLockouts) -> JSON:
        rows, _ = await service.page(find_domain(wanted.domain), offset=wanted.offset, limit=PAGE)
        return [entry(row).model_dump() for row in rows]

    async def remove(wanted: RemoveLockout) -> JSON:
        return await service.unlock(find_domain(wanted.domain), wanted.kind, wanted.name)

    return {
        "lockout.list": command(ListLockouts, listing),
        "lockout.remove": command(RemoveLockout, remove),
    }

"""What the command line asks: user.add, user.list, user.remove."""

from collections.abc import Callable

from sallyport.base.clock import iso
from sallyport.base.command import JSON, Arguments, Command, HexOctets, command
from sallyport.endpoints.model import UserRow
from sallyport.endpoints.service import EndpointUsers

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""


class AddUser(Arguments):
    """password: hex octets, since a password may be in any encoding."""

    name: str
    domain: str
    password: HexOctets


class OneUser(Arguments):
    """A user of a domain."""

    name: str
    domain: str


class ListUsers(Arguments):
    """Of one domain."""

    domain: str


def commands(service: EndpointUsers, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddUser) -> JSON:
        return await service.add(find_domain(wanted.domain), wanted.name, bytes.fromhex(wanted.password))

    async def listing(wanted: ListUsers) -> JSON:
        domain_id = find_domain(wanted.domain)
        rows: list[UserRow] = []
        while page := await service.page(domain_id, offset=len(rows)):
            rows += page
        return [{"id": row.id, "name": row.name, "type": row.user_type, "updated": iso(row.updated_at)} for row in rows]

    async def remove(wanted: OneUser) -> JSON:
        await service.remove(find_domain(wanted.domain), wanted.name)
        return None

    return {
        "user.add": command(AddUser, add),
        "user.list": command(ListUsers, listing),
        "user.remove": command(OneUser, remove),
    }

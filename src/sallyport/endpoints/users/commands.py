"""What the command line asks: user.add, user.list, user.password, user.remove, user.import, user.totp,
user.totp.confirm, user.totp.remove."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, HexOctets, command
from sallyport.base.wire import JSON, Row
from sallyport.endpoints.imports import ImportRows
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.totp import LinkTo, OneTimeSeeds
from sallyport.endpoints.user import check_password
from sallyport.endpoints.users.account import DIRECT, ListedUser, UserChange, UserQuery
from sallyport.endpoints.users.importing import import_rows
from sallyport.endpoints.users.service import Users

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
PAGE = 200


class WithPassword(Arguments):
    """A user and a password for it: hex octets, since a password may be in any encoding."""

    name: str
    domain: str
    password: HexOctets


class OneUser(Arguments):
    """A user of a domain."""

    name: str
    domain: str


class FirstCode(OneUser):
    """The first code of a new seed."""

    code: str


class ListUsers(Arguments):
    """Of one domain. after: the number of users to pass over, since a command reads page by page."""

    domain: str
    search: str = ""
    after: int = Field(default=0, ge=0)


def commands(
    users: EndpointUsers, service: Users, seeds: OneTimeSeeds, find_domain: FindDomain, link_to: LinkTo
) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: WithPassword) -> JSON:
        return await users.add(find_domain(wanted.domain), wanted.name, bytes.fromhex(wanted.password))

    async def password(wanted: WithPassword) -> JSON:
        octets = bytes.fromhex(wanted.password)
        check_password(octets)
        await service.update(find_domain(wanted.domain), wanted.name, UserChange(password=octets))
        return None

    async def listing(wanted: ListUsers) -> JSON:
        column = "name" if wanted.search else ""
        query = UserQuery(find_domain(wanted.domain), column, wanted.search, offset=wanted.after, limit=PAGE)
        found, _ = await service.page(query)
        return [_row(listed) for listed in found]

    async def remove(wanted: OneUser) -> JSON:
        await users.remove(find_domain(wanted.domain), wanted.name)
        return None

    async def importing(wanted: ImportRows) -> JSON:
        planned = await import_rows(service, find_domain(wanted.domain), wanted.rows, apply=wanted.apply)
        return [each.row() for each in planned]

    return {
        "user.add": command(WithPassword, add),
        "user.import": command(ImportRows, importing),
        "user.list": command(ListUsers, listing),
        "user.password": command(WithPassword, password),
        "user.remove": command(OneUser, remove),
        **_totp_commands(seeds, find_domain, link_to),
    }


def _totp_commands(seeds: OneTimeSeeds, find_domain: FindDomain, link_to: LinkTo) -> dict[str, Command]:
    async def enrol(wanted: OneUser) -> JSON:
        made, link = await seeds.enrol(find_domain(wanted.domain), wanted.name)
        return {
            "id": made.user.id,
            "name": made.user.name,
            "otpauth": made.otpauth,
            "seed": made.seed,
            "link": link_to(link),
            "expires": iso(made.expires_at),
        }

    async def confirm(wanted: FirstCode) -> JSON:
        checked = await seeds.confirm(find_domain(wanted.domain), wanted.name, wanted.code)
        return {"right": checked.right, "left": checked.tries_left}

    async def remove(wanted: OneUser) -> JSON:
        return await seeds.remove(find_domain(wanted.domain), wanted.name)

    return {
        "user.totp": command(OneUser, enrol),
        "user.totp.confirm": command(FirstCode, confirm),
        "user.totp.remove": command(OneUser, remove),
    }


def _row(listed: ListedUser) -> Row:
    account = listed.account
    return {
        "id": account.id,
        "name": account.name,
        "type": account.user_type,
        "totp": bool(account.has_totp),
        "updated": iso(account.updated_at),
        "created": iso(account.created_at),
        "password": bool(account.has_password),
        "credential": account.credential_type,
        "privileged": account.privileged_user,
        "source": account.source,
        "did": account.did,
        "ssh_keys": list[JSON](account.ssh_key.splitlines()),
        "instances": [instance.name for instance in listed.instances if instance.source == DIRECT],
        "groups": list[JSON](listed.groups),
    }

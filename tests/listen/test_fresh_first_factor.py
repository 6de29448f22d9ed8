"""While a second factor is waited for, who has checked the password changes: another directory, or a client that may
vouch no more."""

from collections.abc import Awaitable, Callable

import pytest

from sallyport.domains.domain import FirstFactor
from sallyport.mfa.provider import Outcome
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas import Areas, clock
from tests.listen.conftest import Wire, areas
from tests.listen.second import (
    challenged,
    change_before_approval,
    change_before_code,
    events,
    exchange,
    script,
    typed,
    wire,
)
from tests.login.first.conftest import Book, book
from tests.login.second.scripted import Script

__all__ = ["areas", "book", "clock", "script", "wire"]

Change = Callable[[Areas], Awaitable[object]]


async def points_to(areas: Areas, password: str) -> None:
    """The domain's directory is one in which everybody has this password."""
    areas.clock.pass_by(1)
    await areas.first_settings.set(
        areas.domains.table.by_id[areas.domain], FirstFactor.LDAP, {"ldap": {"password": password}}
    )


async def points_elsewhere(areas: Areas) -> None:
    """To another directory."""
    await points_to(areas, "another")


async def nothing(areas: Areas) -> None:
    """No change."""


CHANGES = pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (nothing, ACCESS_ACCEPT, ""),
        (points_elsewhere, ACCESS_REJECT, "the first factor was changed meanwhile"),
    ],
)


@pytest.fixture
async def directory(wire: Wire, book: Book) -> None:
    """The domain's passwords are checked by a directory: hello."""
    await points_to(wire.areas, "hello")


@CHANGES
async def test_while_a_code_is_typed(
    wire: Wire, script: Script, directory: None, change: Change, code: int, reason: str
) -> None:
    """A name of another directory is somebody else's."""
    assert await change_before_code(wire, script, change) == (code, reason)


@CHANGES
async def test_while_the_phone_is_reached_for(
    wire: Wire, script: Script, directory: None, change: Change, code: int, reason: str
) -> None:
    """An approval for somebody of the old directory lets nobody of the new one in."""
    assert await change_before_approval(wire, script, change) == (code, reason)


@pytest.mark.parametrize(
    ("fields", "signed", "code", "reason"),
    [
        ({}, True, ACCESS_ACCEPT, ""),
        ({"password_verified": False}, True, ACCESS_REJECT, "the RADIUS client may not vouch for passwords"),
        ({"require_message_authenticator": "no"}, False, ACCESS_REJECT, "a vouching request is not signed"),
    ],
)
async def test_who_vouches(
    wire: Wire, script: Script, fields: dict[str, object], signed: bool, code: int, reason: str
) -> None:
    """A challenge is answered by a client that may vouch, in a signed request, as it was begun."""
    areas = wire.areas
    client = areas.client_named("nas")
    await areas.clients.update(areas.tenant, client.id, {"password_verified": True})
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    script.begins = Outcome.CODE
    state = await challenged(wire)
    await areas.clients.update(areas.tenant, client.id, fields)
    assert (await exchange(wire, typed("123456", state, signed=signed)))[0] == code
    assert (await events(areas))[-1].reason == reason

"""Tests of a change of the first factor while a second factor is pending: another directory is set, or a client may no
longer check passwords itself."""

from collections.abc import Awaitable, Callable

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.second.prompts import A_MINUTE
from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas import Areas, clock
from tests.areas.login.first.conftest import Book, book
from tests.areas.login.listen.conftest import Wire, areas
from tests.areas.login.listen.second import (
    a_login,
    challenged,
    change_before_approval,
    change_before_code,
    events,
    exchange,
    script,
    typed,
    wire,
)
from tests.areas.login.second.scripted import Script
from tests.packets import attributes

__all__ = ["areas", "book", "clock", "script", "wire"]

Change = Callable[[Areas], Awaitable[object]]


async def set_directory(areas: Areas, password: str) -> None:
    """Set a directory for the domain in which every user has this password."""
    areas.clock.pass_by(1)
    await areas.first_settings.set(
        areas.domains.table.by_id[areas.domain], FirstFactor.LDAP, {"ldap": {"password": password}}
    )


async def change_directory(areas: Areas) -> None:
    """Set another directory for the domain."""
    await set_directory(areas, "another")


async def no_change(areas: Areas) -> None:
    """Change nothing."""


CHANGES = pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (no_change, ACCESS_ACCEPT, ""),
        (change_directory, ACCESS_REJECT, "the first factor was changed meanwhile"),
    ],
)


@pytest.fixture
async def directory(wire: Wire, book: Book) -> None:
    """Return a domain whose passwords are checked by a directory that accepts `hello`."""
    await set_directory(wire.areas, "hello")


@CHANGES
async def test_a_code_after_the_change(
    wire: Wire, script: Script, directory: None, change: Change, code: int, reason: str
) -> None:
    """After a change of the directory a code is rejected, because the name may belong to another person there."""
    assert await change_before_code(wire, script, change) == (code, reason)


@CHANGES
async def test_an_approval_after_the_change(
    wire: Wire, script: Script, directory: None, change: Change, code: int, reason: str
) -> None:
    """After a change of the directory an approval is rejected."""
    assert await change_before_approval(wire, script, change) == (code, reason)


@pytest.mark.parametrize(
    ("fields", "signed", "code", "reason"),
    [
        ({}, True, ACCESS_ACCEPT, ""),
        ({"password_verified": False}, True, ACCESS_REJECT, "the RADIUS client may not vouch for passwords"),
        ({"require_message_authenticator": "no"}, False, ACCESS_REJECT, "a vouching request is not signed"),
    ],
)
async def test_a_client_that_checks_passwords(
    wire: Wire, script: Script, fields: dict[str, object], signed: bool, code: int, reason: str
) -> None:
    """The answer to a challenge of a client with passwordVerified is accepted only if the client still has that setting
    and the request is signed."""
    areas = wire.areas
    client = areas.client_named("nas")
    await areas.clients.update(areas.tenant, client.id, {"password_verified": True})
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    script.begins = Outcome.CODE
    state = await challenged(wire)
    await areas.clients.update(areas.tenant, client.id, fields)
    assert (await exchange(wire, typed("123456", state, signed=signed)))[0] == code
    assert (await events(areas))[-1].reason == reason


async def test_too_many_prompts_keep_their_reason(wire: Wire, script: Script, directory: None) -> None:
    """A login beyond the limit of prompts is refused for this reason: the directory has not changed."""
    script.begins = Outcome.CODE
    for number in range(A_MINUTE):
        await challenged(wire, attributes(ACCT_SESSION_ID=b"session %d" % number))
    code, _ = await exchange(wire, a_login())
    assert (code, (await events(wire.areas))[-1].reason) == (ACCESS_REJECT, "too many prompts")

"""Tests of changes of users, groups and first factors while a second factor is pending.

The state at the end decides the login.
"""

from collections.abc import Awaitable, Callable

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action
from sallyport.radius.attributes import SESSION_TIMEOUT, pull_attributes
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from sallyport.store.model import ListQuery
from tests.areas import Areas, clock
from tests.areas.login.listen.conftest import Wire, areas
from tests.areas.login.listen.second import (
    a_login,
    change_before_approval,
    change_before_code,
    prompted,
    script,
    wire,
)
from tests.areas.login.second.scripted import Script

__all__ = ["areas", "clock", "script", "wire"]

Change = Callable[[Areas], Awaitable[object]]


@pytest.fixture
async def staff(wire: Wire) -> int:
    """Add a group with ann, and return its id.

    Members of the group need a second factor, and all other users are blocked.
    """
    areas = wire.areas
    group = await areas.groups.add(areas.domain, Group("Staff"))
    await areas.groups.assign_users(areas.domain, group, [await ann(areas)], Action.ADD)
    await areas.groups.set_credential_policy(areas.domain, group, {"ttl_user": "600"})
    for rule in (
        {"name": "staff", "action": "mfa_required", "groups": ["Staff"], "priority": 1},
        {"name": "rest", "action": "block", "priority": 2, "everyone": True},
    ):
        await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    return group


async def ann(areas: Areas) -> int:
    """Return ann's id."""
    user = await areas.users.load(areas.domain, "ann")
    assert user is not None
    return user.id


async def group_is_disabled(areas: Areas) -> None:
    """Disable the group."""
    ((group, _),) = (await areas.groups.page(ListQuery(areas.domain, 0, 1), "Staff"))[0]
    await areas.groups.edit(areas.domain, group.id, {"status": "Disabled"})


async def leaves(areas: Areas) -> None:
    """Remove ann from the only group that she is in."""
    ((group, _),) = (await areas.groups.page(ListQuery(areas.domain, 0, 1), "Staff"))[0]
    await areas.groups.assign_users(areas.domain, group.id, [await ann(areas)], Action.REMOVE)


async def new_password(areas: Areas) -> None:
    """Change ann's password."""
    await areas.accounts.update(areas.domain, await ann(areas), UserChange(password=b"another"))


async def is_deleted(areas: Areas) -> None:
    """Remove ann."""
    await areas.remove_user(areas.domain, "ann")


async def vouched(areas: Areas) -> None:
    """Set the domain's first factor to none."""
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})


CHANGES = pytest.mark.parametrize(
    ("change", "reason"),
    [
        (leaves, "blocked by rule"),
        (group_is_disabled, "blocked by rule"),
        (new_password, "wrong password"),
        (is_deleted, "unknown user"),
        (vouched, "the first factor was changed meanwhile"),
    ],
)


@CHANGES
async def test_a_code_after_the_change(wire: Wire, script: Script, staff: int, change: Change, reason: str) -> None:
    """After the change the right code of an earlier challenge is rejected."""
    assert await change_before_code(wire, script, change) == (ACCESS_REJECT, reason)


@CHANGES
async def test_an_approval_after_the_change(
    wire: Wire, script: Script, staff: int, change: Change, reason: str
) -> None:
    """After the change an approval is rejected."""
    assert await change_before_approval(wire, script, change) == (ACCESS_REJECT, reason)


@pytest.mark.parametrize("ttl", ["600", "60"])
async def test_the_session_timeout_after_the_change(wire: Wire, script: Script, staff: int, ttl: str) -> None:
    """The Accept has one Session-Timeout, which comes from the state at the end of the login."""
    login = a_login()
    wire.put(login)
    await prompted(script)
    await wire.areas.groups.set_credential_policy(wire.areas.domain, staff, {"ttl_user": ttl})
    script.answer(0, Outcome.APPROVED)
    reply, _ = await wire.take()
    assert reply[0] == ACCESS_ACCEPT
    timeouts = [value for kind, value in pull_attributes(reply, 20) if kind == SESSION_TIMEOUT]
    assert timeouts == [int(ttl).to_bytes(4)]

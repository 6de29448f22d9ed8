"""Commands for tokens."""

from typing import cast

import pytest

from sallyport.areas.tenancy.operations import local_operations
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import Invalid, NotFound, Unauthenticated
from sallyport.base.wire import JSON
from sallyport.shell.command import Commands
from sallyport.store.model import Engine
from tests.areas import SetClock


@pytest.fixture
def tenancy(store: Engine, clock: SetClock) -> Tenancy:
    """The tenancy service on a store."""
    return Tenancy(store, clock)


@pytest.fixture
def run(store: Engine, tenancy: Tenancy, clock: SetClock) -> Commands:
    """The commands of the tenancy area."""
    return Commands([local_operations(tenancy, Tenants(store, tenancy, clock), clock)])


async def create(run: Commands, **arguments: JSON) -> dict[str, JSON]:
    return cast(dict[str, JSON], await run.ready("token.create", {"org": 1, "tenant": 1, **arguments})())


async def test_a_token_is_created_listed_and_revoked(run: Commands, tenancy: Tenancy, clock: SetClock) -> None:
    """Only the answer to the creation contains the token. The list contains its state."""
    made = await create(run, role="operator", name="ci", expires=iso(clock() + 90 * 86400 * SECOND))
    token, new = cast(str, made.pop("token")), made.pop("new")
    assert (await tenancy.authenticate(token)).name == "ci"
    assert new == ["organization 1", "tenant 1 of organization 1"]
    assert made == {
        "id": made["id"], "org": 1, "tenant": 1, "role": "operator", "name": "ci", "status": "active",
        "created": iso(clock()), "expires": iso(clock() + 90 * 86400 * SECOND), "revoked": None,
    }  # fmt: skip
    assert await run.ready("token.list", {})() == [made]
    revoked = cast(dict[str, JSON], await run.ready("token.revoke", {"token": str(made["id"])})())
    assert revoked["status"] == "revoked"
    with pytest.raises(Unauthenticated):
        await tenancy.authenticate(token)
    with pytest.raises(NotFound, match="there is no organization 1 with tenant 2"):
        await run.ready("token.list", {"org": 1, "tenant": 2})()


async def test_a_token_has_defaults(run: Commands) -> None:
    """By default, a token has the role admin, the name of its role, and no expiry."""
    made = await create(run)
    assert (made["role"], made["name"], made["expires"]) == ("admin", "admin", None)


async def test_a_token_is_revoked_by_id_or_name(run: Commands) -> None:
    """A number is read as an ID, and any other text as a name."""
    await create(run, name="ci")
    assert cast(dict[str, JSON], await run.ready("token.revoke", {"token": "ci"})())["status"] == "revoked"
    for unknown in ("12345", "9" * 30, "other"):
        with pytest.raises(NotFound):
            await run.ready("token.revoke", {"token": unknown})()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"org": 0}, "invalid org"),
        ({"org": "x"}, "invalid org"),
        ({"org": 2**63}, "invalid org"),
        ({"role": "root"}, "invalid role"),
        ({"role": "agent"}, "invalid role"),
        ({"expires": "soon"}, "invalid expires"),
        ({"expires": "0d"}, "invalid expires"),
        ({"expires": "2001-01-01"}, "invalid expires"),
        ({"expires": "999999w"}, "invalid expires"),
        ({"name": "12"}, "invalid name"),
        ({"more": 1}, "invalid body"),
    ],
)
async def test_wrong_arguments_are_named(run: Commands, arguments: dict[str, JSON], message: str) -> None:
    """The message contains the name of the field, but not its value."""
    with pytest.raises(Invalid, match=f"^{message}$"):
        await create(run, **arguments)

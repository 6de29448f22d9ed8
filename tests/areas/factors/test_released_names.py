"""The factors of people whom a directory removes or renames. The next person with the name does not get them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.repo import set_first_factor
from sallyport.areas.factors.bypass_codes.code import Wanted
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.base.totp import hotp, seed_octets, step_at
from tests.areas import Areas, SetClock, running_areas
from tests.areas.directory.mappings.test_service import map_now
from tests.areas.directory.world import imported, person
from tests.areas.factors.people import SETTINGS

FIRST, SECOND = (f"entryUUID: 00000000-0000-4000-8000-00000000000{digit}" for digit in "12")
REMOVED = "dn: uid=ann,ou=People,dc=x\nchangetype: delete\n"
RENAMED = person("ann", FIRST).replace("uid: ann", "uid: anna")


@pytest.fixture
async def listed(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas of a domain whose people are those of a directory: ann, who has each factor, and ben."""
    async with running_areas(tmp_path, clock, more=SETTINGS) as areas:
        await areas.store.write(lambda tx: set_first_factor(tx, areas.domain, FirstFactor.NONE))
        await imported(areas, person("ann", FIRST, "employeeNumber: 007") + person("ben"))
        for name in ("ann", "ben"):
            await enrol(areas, name)
        yield areas


async def enrol(areas: Areas, name: str) -> None:
    """Give a person each factor, and an enrolment link."""
    seeds = areas.app.users.seeds
    made, _ = await seeds.enrol(areas.domain, name)
    assert (await seeds.confirm(areas.domain, name, hotp(seed_octets(made.seed), step_at(areas.clock())))).right
    await areas.app.factors.bypass_codes.make(areas.domain, name, Wanted())
    await areas.app.me.links.make(Person(areas.domain, name))
    sql = (
        "insert into passkeys (domain_id, user_key, user_name, user_handle, rp_id, credential_id, public_key, "
        "sign_count, backup_eligible, backed_up, transports, name, created_at) "
        "values (:d, :name, :name, :octets, 'x', :octets, :octets, 0, 0, 0, '', 'phone', 0)"
    )
    await areas.store.write(lambda tx: tx.execute(sql, d=areas.domain, name=name, octets=name.encode()))


async def held(areas: Areas, name: str) -> set[str]:
    """Return the factors and links under a name."""
    tables = ("passkeys", "bypass_codes", "enrolment_links")
    sql = "select count(*) from {} where domain_id = :d and user_key = :name"
    found = set[str]()
    for table in tables:
        counted = sql.format(table)
        if await areas.store.read(lambda tx, sql=counted: tx.value(int, sql, d=areas.domain, name=name)):  # type: ignore[misc]
            found.add(table)
    return found | ({"totp"} if await areas.app.users.seeds.seed(areas.domain, name) else set())


ALL = {"passkeys", "bypass_codes", "enrolment_links", "totp"}


@pytest.mark.parametrize(
    ("ldif", "complete"),
    [
        (REMOVED, False),
        (person("ben"), True),
        (person("ann", SECOND) + person("ben"), True),  # another person with the same name
        (RENAMED, False),
    ],
    ids=["removed", "missing", "other", "renamed"],
)
async def test_a_name_that_becomes_free_loses_its_factors(listed: Areas, ldif: str, complete: bool) -> None:
    """The other people keep theirs. The audit trail tells it."""
    assert await held(listed, "ann") == ALL
    await imported(listed, ldif, complete=complete)
    assert await held(listed, "ann") == set() and await held(listed, "ben") == ALL
    sql = "select target from audit_trail where action = 'user.factors.release'"
    assert await listed.store.read(lambda tx: tx.rows(sql)) == [("user ann",)]


async def test_a_mapping_that_renames_a_person_releases_the_name(listed: Areas) -> None:
    """The former name is free for another person too."""
    await map_now(listed, username="employeenumber")
    assert await held(listed, "ann") == set()


async def disabled(areas: Areas) -> None:
    """Disable the person."""
    await imported(areas, person("ann", FIRST, "employeeNumber: 007", "nsAccountLock: TRUE"))


async def written_otherwise(areas: Areas) -> None:
    """Change the spelling of the name, and the unit of the person."""
    await imported(areas, person("ann", FIRST, ou="Sales").replace("uid: ann", "uid: Ann"))


async def moved(areas: Areas) -> None:
    """Move the person to another directory of the domain."""
    await imported(areas, person("ann", SECOND), name="other")
    await imported(areas, REMOVED)


async def local(areas: Areas) -> None:
    """Remove the person of a domain in which an endpoint user has this name."""
    await areas.store.write(lambda tx: set_first_factor(tx, areas.domain, FirstFactor.LOCAL))
    await areas.add_user(areas.domain, "ann", b"hello")
    await imported(areas, REMOVED)


@pytest.mark.parametrize("change", [disabled, written_otherwise, moved, local])
async def test_the_same_person_keeps_the_factors(listed: Areas, change: Callable[[Areas], Awaitable[None]]) -> None:
    """A disabled person, another spelling, and a move to another directory release no name."""
    await change(listed)
    assert await held(listed, "ann") == ALL


async def test_a_later_endpoint_user_does_not_get_the_factors(listed: Areas) -> None:
    """A domain that changes to endpoint users has none of this name when the directory removes the person."""
    await listed.store.write(lambda tx: set_first_factor(tx, listed.domain, FirstFactor.LOCAL))
    await imported(listed, REMOVED)
    await listed.add_user(listed.domain, "ann", b"hello")
    assert await held(listed, "ann") == set()


async def test_a_person_of_a_directory_is_no_local_user(listed: Areas) -> None:
    """A list shows so. An admin who adds the person makes it a local user, unless the admin gives another type."""

    async def types() -> list[str]:
        rows, _ = await listed.accounts.page(UserQuery(listed.domain))
        return [each.listed_type for each in rows]

    assert await types() == ["Directory User"] * 2
    await listed.accounts.add(listed.domain, UserChange("ann"))
    await listed.accounts.add(listed.domain, UserChange("ben", "Guest"))
    assert await types() == ["Local User", "Guest"]
    _, total = await listed.accounts.page(UserQuery(listed.domain, "user_type", "Local User"))
    assert total == 1

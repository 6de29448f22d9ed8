"""Users of FreeRADIUS: they are written after the other objects, in transactions of their own."""

from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

import pytest

from sallyport.areas.migration.operations import shown_write
from sallyport.areas.migration.service import USERS, Import, ImportUsers, Planned
from sallyport.areas.migration.translation import Options, Weight
from sallyport.areas.users.accounts.account import UserQuery
from sallyport.areas.users.imports import import_users
from sallyport.base.errors import Conflict
from tests.areas import Areas, areas, clock
from tests.areas.migration.test_archives import CLIENTS, tar

__all__ = ["areas", "clock"]

COUNT = 2 * USERS + 5
PEOPLE = "".join(f'u{n} Cleartext-Password := "password of {n}"\n' for n in range(COUNT))


class Killed(Exception):
    """The process is killed."""


def service_of(areas: Areas, *, transactions: int = 1000, import_people: ImportUsers | None = None) -> Import:
    """Return the service. transactions: the number of those that write users before the process is killed.
    import_people: another function that writes users."""
    app, left = areas.app, transactions

    async def stopping(domain_id: int, rows: Sequence[Mapping[str, object]], *, apply: bool) -> Any:
        nonlocal left
        left -= apply
        if left < 0:
            raise Killed
        return await import_users(areas.store, app.users.accounts, domain_id, rows, apply=apply)

    of_directory = app.directory.directories.groups_by_sid
    engine, files = app.configured.engine, app.migration.files
    return Import(engine, app.domains.service, of_directory, import_people or stopping, files, areas.store)


async def planned(areas: Areas, service: Import, people: str = PEOPLE) -> Planned:
    """Return the plan of an archive with users."""
    with TemporaryFile() as file:
        file.write(tar({"clients.conf": CLIENTS, "users": people.encode()}))
        file.flush()
        return await service.plan(areas.tenant, areas.domain, "freeradius", file, "raddb.tgz", Options(""), None)


async def names(areas: Areas) -> list[str]:
    """Return the names of the users of the domain."""
    found, _ = await areas.app.users.accounts.page(UserQuery(areas.domain, limit=1000))
    return sorted(each.name for each in found)


async def test_an_interrupted_import_is_completed_by_the_next_one(areas: Areas) -> None:
    """A process that is killed between two transactions of users leaves the clients, the rules and some users. The
    rules admit only users of the file, of whom those without a password here are refused. The next import of the same
    file adds the rest."""
    killed = service_of(areas, transactions=1)
    plan = await planned(areas, killed)
    assert len(plan.people) == COUNT and not await names(areas)
    with pytest.raises(Killed):
        await killed.write(areas.domain, plan, plan.name)
    assert len(await names(areas)) == USERS
    assert [each.name for each in areas.clients.of_tenant(areas.tenant)] == ["core"]
    rules = areas.app.rules.service.all_of(areas.domain)
    allows = [each.definition for each in rules if each.action == "allow" and each.definition.enabled]
    assert {name for each in allows for name in each.values("users")} == {f"u{n}" for n in range(COUNT)}
    service = service_of(areas)
    rest = await planned(areas, service)
    assert (len(rest.people), rest.unchanged, rest.plan.changes) == (COUNT - USERS, USERS, [])
    await service.write(areas.domain, rest, rest.name)
    assert len(await names(areas)) == COUNT
    again = await planned(areas, service)
    assert (again.people, again.unchanged, again.plan.changes) == ([], COUNT, [])


async def test_a_user_who_is_refused_after_the_plan(areas: Areas) -> None:
    """The clients and the users of earlier transactions are written. A finding names the user, and the rest is not
    counted as written."""
    app, refuses = areas.app, f"u{USERS + 3}"

    async def refusing(domain_id: int, rows: Sequence[Mapping[str, object]], *, apply: bool) -> Any:
        if apply and any(each["userName"] == refuses for each in rows):
            raise Conflict(f"{refuses}: too short")
        return await import_users(areas.store, app.users.accounts, domain_id, rows, apply=apply)

    service = service_of(areas, import_people=refusing)
    plan = await planned(areas, service)
    written = await service.write(areas.domain, plan, plan.name)
    assert len(written.people) == USERS == len(await names(areas))
    assert [each.name for each in areas.clients.of_tenant(areas.tenant)] == ["core"]
    (finding,) = [each for each in written.found.findings if each.name == "users"]
    assert refuses in finding.text and f"{COUNT - USERS} users not written" in finding.text
    answer = shown_write(plan, written)
    assert answer.applied and f"{COUNT - USERS} users not" in answer.message
    assert finding.text in [each.text for each in answer.findings]


async def test_another_password_changes_the_user(areas: Areas) -> None:
    """A user whose password differs is a change, whose values no answer has. One that cannot be imported is a
    finding with its line, and stops nothing."""
    service = service_of(areas)
    long = f'carl Cleartext-Password := "{"x" * 5000}"\n'
    people = f'ann Cleartext-Password := "one password"\nbob Cleartext-Password := ""\n{long}'
    first = await planned(areas, service, people)
    assert [each.name for each in first.found.named(Weight.LEFT_OUT)] == ["bob", "carl"]
    await service.write(areas.domain, first, first.name)
    second = await planned(areas, service, people.replace("one password", "another one"))
    assert [(item.name, each.outcome, [*each.changes]) for item, each in second.people] == [
        ("ann", "changed", ["password"])
    ]
    assert second.name != first.name

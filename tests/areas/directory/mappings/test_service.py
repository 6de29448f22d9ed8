"""Mappings that are applied after the people were imported."""

import json

import pytest

from sallyport.areas.directory.mappings.mapping import MAX_MAPPED
from sallyport.base.errors import Conflict
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.directory.world import at_work, group, groups_of, imported, over, person


async def map_now(areas: Areas, **fields: str) -> None:
    """Set a mapping of the directory `LDIF`, and wait until it is applied."""
    directories, service = areas.directory.directories, areas.directory.mappings
    async with at_work(areas):
        await service.set(await directories.named(areas.domain, "LDIF"), fields, apply=True)
        jobs = await directories.jobs_named([areas.domain], "LDIF")
        assert (await over(areas, jobs[0].id)).state == "DONE"


async def test_a_mapped_login_name_ends_with_its_mapping(areas: Areas) -> None:
    """When a mapping is removed, a login name that came only from it is removed too. A name that the directory itself
    gives is kept.
    """
    ann = person("ann", "userPrincipalName: ann@corp.x", "employeeNumber: 007")
    await imported(areas, ann + group("ops", "uid=ann,ou=People,dc=x"))
    for attribute in ("userPrincipalName", "employeeNumber", ""):
        await map_now(areas, username=attribute.lower())
        assert await groups_of(areas, "ann") == await groups_of(areas, "ann@corp.x") == {"ops"}
        assert await groups_of(areas, "007") == ({"ops"} if attribute == "employeeNumber" else frozenset())


async def test_a_recreated_group_keeps_its_mapping(areas: Areas) -> None:
    """A group that is created again with the same name has a new ID. It keeps the former mapping, and its people keep
    the mapped fields.
    """

    def ldif(identity: int) -> str:
        uuid = f"entryUUID: 00000000-0000-4000-8000-00000000000{identity}\nobjectClass"
        ops = group("ops", "uid=ann,ou=People,dc=x").replace("objectClass", uuid)
        return person("ann", "title: Engineer", "l: Berlin") + person("ben") + ops + group("others")

    await imported(areas, ldif(1))
    directories, service = areas.directory.directories, areas.directory.mappings
    former = (await service.groups_named(await directories.named(areas.domain, "LDIF"), "ops"))[0]
    await service.set(former, {"department": "l"}, apply=False)
    for complete in (False, True):
        await imported(areas, ldif(2), complete=complete)
    groups = await service.groups_named(await directories.named(areas.domain, "LDIF"), "OPS")
    assert [(each.id != former.id, json.loads(each.mapping)) for each in groups] == [(True, {"department": "l"})]
    users, _ = await directories.users(ListQuery(areas.domain, 0, 1), "ann")
    assert json.loads(users[0].fields)["department"] == "Berlin"


async def test_a_group_deleted_and_added_again_keeps_its_mapping(areas: Areas) -> None:
    """If a change deletes a group and then adds one with the same name, the new group keeps the mapping. A group with
    another name does not get it.
    """
    ann, ops = person("ann", "title: Engineer", "l: Berlin"), group("ops", "uid=ann,ou=People,dc=x")
    await imported(areas, ann + ops)
    directories, service = areas.directory.directories, areas.directory.mappings
    directory = await directories.named(areas.domain, "LDIF")
    former = (await service.groups_named(directory, "ops"))[0]
    await service.set(former, {"department": "l"}, apply=True)
    added = group("Ops", "uid=ann,ou=People,dc=x") + group("others", "uid=ann,ou=People,dc=x")
    await imported(
        areas,
        "dn: cn=ops,dc=x\nchangetype: delete\n\n" + added.replace("objectClass", "changetype: add\nobjectClass"),
    )
    groups = [group for name in ("ops", "others") for group in await service.groups_named(directory, name)]
    mappings = [json.loads(each.mapping) for each in groups]
    assert mappings == [{"department": "l"}, {}]
    assert groups[0].id != former.id
    users, _ = await directories.users(ListQuery(areas.domain, 0, 1), "ann")
    assert json.loads(users[0].fields)["department"] == "Berlin"


async def test_the_number_of_mapped_attributes_is_limited(areas: Areas) -> None:
    """A directory and its groups may together map at most MAX_MAPPED attributes. An attribute that is mapped twice
    counts once.
    """
    await imported(areas, "".join(group(f"g{number}") for number in range(3)))
    directories, service = areas.directory.directories, areas.directory.mappings
    directory = await directories.named(areas.domain, "LDIF")
    first, second, third = [(await service.groups_named(directory, f"g{number}"))[0] for number in range(3)]
    fields, each = ("department", "location", "region", "roles", "fax"), MAX_MAPPED // 10
    for at, of in enumerate((directory, first)):
        taken = {field: ",".join(f"a{at}-{field}-{number}" for number in range(each)) for field in fields}
        await service.set(of, taken, apply=False)
    await service.set(second, {"email": "a0-fax-1"}, apply=False)
    with pytest.raises(Conflict, match="at most 200 attributes"):
        await service.set(third, {"email": "mail"}, apply=False)
    await service.set(first, {"fax": ""}, apply=False)
    await service.set(third, {"email": "mail"}, apply=False)

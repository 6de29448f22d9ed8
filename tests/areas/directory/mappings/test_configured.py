"""Field mappings of groups in files (`sallyport apply`)."""

import json

import pytest

from sallyport.areas.configuration.managed import ManagedByFiles
from sallyport.areas.directory.mappings.mapping import MAX_MAPPED
from sallyport.base.errors import Conflict, Invalid
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.configuration.test_apply import engine_of, export, items, signs
from tests.areas.directory.world import group, imported, person

OPS = {"groupName": "Ops", "fieldMappings": {"department": "l"}}


def folder(*mappings: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    """Return the file of a directory with mappings of groups."""
    fields: dict[str, object] = {"domain": "corp", "directoryName": "LDIF", "kind": "ldif"}
    return [("directory", {**fields, "groupMappings": list(mappings)})]


async def apply(areas: Areas, *mappings: dict[str, object]) -> None:
    """Apply the file of a directory with mappings of groups."""
    await engine_of(areas).run(areas.tenant, items(folder(*mappings)))


async def mappings_of(areas: Areas) -> list[object]:
    """Return the mappings of groups as an export has them."""
    return [fields.get("groupMappings", []) for kind, fields in await export(areas) if kind == "directory"]


async def test_a_group_gets_its_mapping_when_it_is_read(areas: Areas) -> None:
    """A file has the mapping before the group is read. The people of the group have the mapped fields after the import,
    and the file changes nothing more."""
    await apply(areas, OPS)
    assert await mappings_of(areas) == [[OPS]]
    await imported(areas, person("ann", "title: Engineer", "l: Berlin") + group("ops", "uid=ann,ou=People,dc=x"))
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 1), "ann")
    assert json.loads(users[0].fields)["department"] == "Berlin"
    assert await signs(areas, folder(OPS)) == []
    assert await mappings_of(areas) == [[{**OPS, "groupName": "ops"}]]


async def test_files_set_and_remove_the_mappings_of_stored_groups(areas: Areas) -> None:
    """A mapping that an admin has set differs from the file until the next apply. A mapping that left the file is
    removed."""
    await imported(areas, group("ops") + group("others"))
    service = areas.directory.mappings
    directory = await areas.directory.directories.named(areas.domain, "LDIF")
    (ops,), (others,) = [await service.groups_named(directory, name) for name in ("ops", "others")]
    await service.set(others, {"fax": "fax"}, apply=False)
    await apply(areas, OPS)
    assert [json.loads((await service.group(each.id)).mapping) for each in (ops, others)] == [{"department": "l"}, {}]
    await service.set(ops, {"department": ""}, apply=False)
    assert await signs(areas, folder(OPS)) == ["~ directory corp"]
    await apply(areas, OPS)
    assert await signs(areas, folder(OPS)) == []
    await apply(areas)
    assert await mappings_of(areas) == [[]]


async def test_a_mapping_of_a_group_belongs_to_the_directory_of_files(areas: Areas) -> None:
    """The operation that changes a mapping is refused, for a group and for the directory."""
    await imported(areas, group("ops"))
    check = areas.app.configured.managed.check
    directory = await areas.directory.directories.named(areas.domain, "LDIF")
    (ops,) = await areas.directory.mappings.groups_named(directory, "ops")
    bodies = [{"groupID": ops.id}, {"groupID": None, "directoryName": "ldif", "domainId": areas.domain}]
    for body in bodies:
        assert await check(areas.tenant, "/api/v1/reConfigure", [body], override=False) is None
    await apply(areas, OPS)
    for body in bodies:
        with pytest.raises(ManagedByFiles, match=r"directory\.toml manages the directory corp/ldif"):
            await check(areas.tenant, "/api/v1/reConfigure", [body], override=False)


async def test_mappings_of_groups_have_limits(areas: Areas) -> None:
    """A group is named once, and all mappings together have at most MAX_MAPPED attributes."""
    with pytest.raises(Invalid, match="must have each group once"):
        await apply(areas, OPS, {**OPS, "groupName": "OPS"})
    several = [
        {"groupName": f"g{number}", "fieldMappings": {"roles": ",".join(f"a{number}-{at}" for at in range(10))}}
        for number in range(MAX_MAPPED // 10 + 1)
    ]
    await apply(areas, *several[1:])
    with pytest.raises(Conflict, match="at most 200 attributes"):
        await apply(areas, *several)

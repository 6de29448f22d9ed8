"""Mappings applied to who is there."""

from tests.areas import Areas
from tests.directory.world import at_work, group, groups_of, imported, over, person


async def map_now(areas: Areas, **fields: str) -> None:
    """Set a mapping of the directory `LDIF`, and wait until it is applied."""
    directories = areas.directory.directories
    async with at_work(areas):
        await directories.map_fields(await directories.named(areas.domain, "LDIF"), fields, apply=True)
        jobs = await directories.jobs_named([areas.domain], ["LDIF"])
        assert (await over(areas, jobs[0].id)).state == "DONE"


async def test_a_login_name_for_a_while(areas: Areas) -> None:
    """When a mapping does not name it any more, a name of the directory's own stays, and a made one goes."""
    ann = person("ann", "userPrincipalName: ann@corp.x", "employeeNumber: 007")
    await imported(areas, ann + group("ops", "uid=ann,ou=People,dc=x"))
    for attribute in ("userPrincipalName", "employeeNumber", ""):
        await map_now(areas, username=attribute.lower())
        assert await groups_of(areas, "ann") == await groups_of(areas, "ann@corp.x") == {"ops"}
        assert await groups_of(areas, "007") == ({"ops"} if attribute == "employeeNumber" else frozenset())

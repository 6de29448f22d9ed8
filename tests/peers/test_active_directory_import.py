"""Tests of imports from Active Directory (Samba): people, nested groups, disabled users and removed users."""

from pathlib import Path

import pytest
import trio

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind, User
from sallyport.areas.directory.imports.job import Job
from sallyport.store.model import ListQuery
from tests.areas import Areas, SetClock, running_areas
from tests.peers.samba import BASE, DC_NAME, PASSWORD, PEOPLE, REALM, Corp, in_network, look_up, needs_samba

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_samba]


async def synced(areas: Areas) -> Job:
    """Read the directory, and return the job when it has finished."""
    directories = areas.directory.directories
    job_id = await directories.sync(areas.domain, "ad")
    with trio.fail_after(120):
        while (job := await directories.jobs.get(job_id)).state in ("QUEUED", "RUNNING"):
            await trio.sleep(0.05)
    assert (job.state, job.message, job.errors) == ("DONE", "", "[]")
    return job


async def people(areas: Areas) -> dict[str, User]:
    """Return the people of the domain, keyed by name."""
    found, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 1000), "")
    return {user.name: user for user in found}


async def members(areas: Areas, name: str) -> set[str]:
    """Return the people in a group and in its nested groups."""
    directories, stretch = areas.directory.directories, ListQuery(areas.domain, 0, 1000)
    (group,) = [group for group in (await directories.groups(stretch, name))[0] if group.name == name]
    return {user.name for user in (await directories.users_of_group(group.id, stretch, ""))[0]}


async def test_a_domain_is_imported(corp: Corp, tmp_path: Path) -> None:
    """The first import contains everything. The next import contains only the changes. A renamed user keeps its row."""
    corp.administer(
        ["user", "create", "moves", PASSWORD],
        ["user", "create", "leaves", PASSWORD],
        ["group", "add", "all-staff"],
        ["group", "addmembers", "all-staff", "staff,moves"],
    )
    settings = {"baseDN": BASE, "bindDN": f"reader@{REALM.lower()}", "caCertificate": corp.authority.pem}
    said = DirectoryConfiguration(
        "ad", DirectoryKind.LDAP, app_url=f"ldaps://{DC_NAME}", settings=settings, secret=PASSWORD.encode()
    )
    with in_network(corp):
        async with running_areas(tmp_path, SetClock(), look_up=look_up) as areas, trio.open_nursery() as nursery:
            nursery.start_soon(areas.directory.jobs.run)
            await areas.directory.directories.save([(areas.domain, said)])
            await synced(areas)
            before = await people(areas)
            assert {*PEOPLE, "moves", "leaves"} <= set(before)
            assert before["off"].status == "disabled"
            assert await members(areas, "all-staff") == {"ann", "jörg", "moves"}
            assert {"ann", "bob"} <= await members(areas, "Domain Users")

            corp.administer(
                ["user", "delete", "leaves"],
                ["user", "rename", "moves", "--samaccountname=moved"],
                ["user", "disable", "moved"],
                ["group", "removemembers", "all-staff", "staff"],
            )
            job = await synced(areas)
            after = await people(areas)
            assert (job.added, job.removed) == (0, 1)
            assert "leaves" not in after
            assert (after["moved"].id, after["moved"].status) == (before["moves"].id, "disabled")
            assert await members(areas, "all-staff") == {"moved"}
            nursery.cancel_scope.cancel()
    corp.administer(["user", "delete", "moved"], ["group", "delete", "all-staff"])

"""The source and the secret of readings, with a reader that notes its arguments."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import Contradiction, Invalid, StoreError
from sallyport.directory.area import DirectoryArea
from sallyport.directory.bodies import ImportUsers
from sallyport.directory.directory import Configuration, DirectoryKind, Reading
from sallyport.directory.entry import Batch, Person, Status
from sallyport.directory.imports.job import Job, Source
from sallyport.directory.imports.scheduler import AT_ONCE
from sallyport.metrics import DirectoryMetrics
from tests.areas import Areas
from tests.directory.world import at_work, names, over, person, queue

CONFIGURATION = Configuration(
    "hq", app_url="ldaps://dc1.corp.example, ldaps://dc2.corp.example", settings={"bindDN": "cn=a"}, secret=b"hunter2"
)


class Reader:
    """Shows the people it has, all of them at each reading, or raises its error. endless: the domains whose directories
    never come to an end. sources: what it was asked to read."""

    def __init__(self) -> None:
        self.people: list[str] = []
        self.error: Exception | None = None
        self.endless = set[int]()
        self.sources = list[Source]()

    @asynccontextmanager
    async def read(self, source: Source, cursor: str, full: bool) -> AsyncGenerator[AsyncIterator[Batch], None]:
        """Satisfies imports.job.Read."""
        self.sources.append(source)
        if self.error is not None:
            raise self.error

        async def batches() -> AsyncGenerator[Batch, None]:
            people = [_person(name) for name in self.people]
            while source.domain_id in self.endless:
                yield Batch(people, complete=False, cursor="")
                await trio.sleep(0.01)
            yield Batch(people, complete=full, cursor="c")

        async with aclosing(batches()) as found:
            yield found

    @property
    def secrets(self) -> list[str | None]:
        """What each reading was given to bind with."""
        return [None if each.secret is None else each.secret.reveal().decode() for each in self.sources]


def _person(name: str) -> Person:
    dn = f"uid={name},dc=x"
    return Person(f"dn:{dn}", dn, name, (), Status.ACTIVE, (), {})


@pytest.fixture
def reader(areas: Areas) -> Reader:
    """The reader of the domain's LDAP directories, in place of the one that goes to the network."""
    reader = Reader()
    areas.directory = DirectoryArea(
        areas.store,
        areas.vault,
        areas.store.path.parent,
        areas.revocations,
        {"ldap": reader.read},
        {},
        areas.clock,
        DirectoryMetrics(CollectorRegistry()),
    )
    return reader


async def import_users(areas: Areas, *, secret: bytes | None = None, **fields: Any) -> Job:
    """An importUsers of the domain, once it is over."""
    asked = ImportUsers.model_validate({"ldapHost": "dc1.corp.example", "baseDN": "dc=x", "domainID": 1, **fields})
    wanted = [Reading(areas.domain, asked.directoryName, asked.source(), secret, complete=asked.complete)]
    async with at_work(areas):
        return await over(areas, (await areas.directory.directories.import_users(wanted))[0])


async def synced(areas: Areas, *, full: bool = False) -> Job:
    """A reading of `hq` as it is set, once it is over."""
    async with at_work(areas):
        return await over(areas, await areas.directory.directories.sync(areas.domain, "hq", full=full))


async def test_a_secret_is_for_its_directory_alone(areas: Areas, reader: Reader) -> None:
    """An import from another host, by name or address, uses the secret of the request or none."""
    reader.people = ["ann"]
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    assert (await synced(areas)).state == "DONE"
    await import_users(areas, ldapHost="evil.example", directoryName="hq")
    await import_users(areas)
    await import_users(areas, secret=b"own")
    await synced(areas)
    assert reader.secrets == ["hunter2", None, None, "own", "hunter2"]


@pytest.mark.parametrize(
    "changed",
    [
        Configuration("hq", app_url="ldaps://evil.example"),
        Configuration("hq", app_url=""),
        Configuration("hq", kind=DirectoryKind.OKTA),
        Configuration("hq", account_name="cn=b"),
        Configuration("hq", settings={"caCertificate": "another"}),
        Configuration("hq", settings={"startTls": "true"}),
        Configuration("hq", settings={"bindDN": "cn=b"}),
        Configuration("hq", settings={"bindDN": ""}),
        Configuration("hq", settings={"clientId": "b"}),
    ],
)
async def test_a_secret_does_not_move(areas: Areas, reader: Reader, changed: Configuration) -> None:
    """The destination of a secret is changed only together with the secret; a refusal names the field and changes
    nothing."""
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    before = await directories.named(areas.domain, "hq")
    with pytest.raises(Invalid) as refused:
        await directories.save([(areas.domain, Configuration("new")), (areas.domain, changed)])
    assert [each.field for each in refused.value.fields] == ["bindPassword"]
    assert await directories.of_domain(areas.domain) == [before]
    await directories.save([(areas.domain, replace(changed, secret=b"another"))])
    assert (await directories.named(areas.domain, "hq")).secret != before.secret


async def test_a_secret_stays_with_what_does_not_move_it(areas: Areas, reader: Reader) -> None:
    """The same said again, and another part of the same directory, need no secret."""
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    same = {"bindDN": "cn=a", "startTls": "", "caCertificate": None, "baseDN": "dc=y", "filter": "(uid=*)"}
    await directories.save([(areas.domain, replace(CONFIGURATION, secret=None, settings=same))])
    assert (await synced(areas)).state == "DONE"
    assert reader.secrets == ["hunter2"] and reader.sources[0].settings["baseDN"] == "dc=y"


async def test_who_waits_for_the_store_keeps_no_place(areas: Areas, reader: Reader) -> None:
    """However many domains' imports the store does not take, another domain's is done; they are not over."""
    reader.error, waiting = StoreError("not now"), list[int]()
    directories = areas.directory.directories
    for number in range(AT_ONCE):
        domain = await areas.domains.add(areas.tenant, f"branch{number}")
        await directories.save([(domain, CONFIGURATION)])
        waiting.append(await directories.sync(domain, "hq"))
    async with at_work(areas):
        job = await over(areas, await queue(areas, person("ann")))
    assert (job.state, job.added) == ("DONE", 1)
    assert {(await areas.directory.jobs.get(job_id)).ended_at for job_id in waiting} == {None}


async def test_a_directory_without_end_is_its_tenants_trouble(areas: Areas, reader: Reader) -> None:
    """The imports of one tenant's domains do not delay another tenant's, and only so many of them run at once."""
    directories = areas.directory.directories
    for number in range(2 * AT_ONCE):
        domain = await areas.domains.add(areas.tenant, f"branch{number}")
        reader.endless.add(domain)
        await directories.save([(domain, CONFIGURATION)])
        await directories.sync(domain, "hq")
    other = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "corp")
    reader.people = ["ann"]
    await directories.save([(other, CONFIGURATION)])
    async with at_work(areas):
        job = await over(areas, await directories.sync(other, "hq"))
    assert (job.state, job.added) == ("DONE", 1)
    assert len([each for each in reader.sources if each.domain_id in reader.endless]) == AT_ONCE


async def test_a_reading_has_a_limit(areas: Areas, reader: Reader) -> None:
    """A directory that tells entries without end does not fill the disk."""
    reader.endless.add(areas.domain)
    reader.people = ["ann"]
    areas.directory.jobs.collector.largest = 1 << 10
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    job = await synced(areas)
    assert (job.state, job.message) == ("FAILED", "a reading has at most 0 MiB")
    assert not list((areas.store.path.parent / "directory").iterdir())


async def test_what_would_fail_each_time_is_not_tried_again(areas: Areas, reader: Reader) -> None:
    """An import that the store's own rules do not allow is over, with a number that the log explains."""
    reader.error = Contradiction("UNIQUE constraint failed")
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    job = await synced(areas)
    assert job.state == "FAILED" and job.message.startswith("internal error") and len(reader.sources) == 1


async def test_an_import_removes_nobody_unasked(areas: Areas, reader: Reader) -> None:
    """importUsers may read a part of a directory: missing people stay, unless the request is complete."""
    reader.people = ["ann", "ben"]
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    await synced(areas)
    reader.people = ["ann"]
    job = await import_users(areas, directoryName="hq", filter="(uid=ann)")
    assert (job.state, job.removed, await names(areas)) == ("DONE", 0, ["ann", "ben"])
    job = await import_users(areas, directoryName="hq", complete=True)
    assert (job.state, job.removed, await names(areas)) == ("DONE", 1, ["ann"])
    reader.people = ["ann", "eve"]
    await synced(areas)
    reader.people = ["eve"]
    assert ((await synced(areas, full=True)).removed, await names(areas)) == (1, ["eve"])


async def test_who_shows_nobody_removes_nobody(areas: Areas, reader: Reader) -> None:
    """A complete reading without people does not remove people, and its message says that."""
    reader.people = ["ann"]
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    await synced(areas)
    reader.people = []
    job = await synced(areas, full=True)
    assert (job.state, job.removed, job.message) == ("DONE", 0, "nothing was removed, since the source has no people")
    assert await names(areas) == ["ann"]


async def test_which_directory_is_meant(areas: Areas, reader: Reader) -> None:
    """Without a name: the one of whose servers one has that host and port; another port is another directory."""
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    asked: list[tuple[dict[str, Any], str]] = [
        ({"ldapHost": "DC2.corp.example", "ldapPort": "636"}, "hq"),
        ({"ldapHost": "dc2.corp.example"}, "dc2.corp.example"),
        ({"ldapHost": "dc1.corp.example", "ldapPort": 3269}, "dc1.corp.example"),
    ]
    for fields, meant in asked:
        assert (await import_users(areas, **fields)).directory_name == meant
    await directories.save([(areas.domain, Configuration("dc3", app_url="ldap://dc3"))])
    assert (await import_users(areas, ldapHost="dc3", ldapPort=1389)).directory_name == "dc3:1389"


async def test_files_first(areas: Areas, reader: Reader) -> None:
    """A directory that was filled by a file is read by the service as soon as it is set where it is."""
    reader.people = ["ann"]
    async with at_work(areas):
        await over(areas, await queue(areas, person("ben"), name="hq"))
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    assert (await areas.directory.directories.named(areas.domain, "hq")).kind == "ldap"
    assert (await synced(areas)).state == "DONE" and reader.secrets == ["hunter2"]

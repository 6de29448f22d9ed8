"""The source and the secret that a reading uses. They are checked with a reader that records its arguments."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.directory.area import DirectoryArea
from sallyport.areas.directory.bodies import ImportUsers
from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind, ReadRequest
from sallyport.areas.directory.entry.entry import Batch, Person, Unchanged
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.imports.job import DirectorySource, Job
from sallyport.areas.directory.imports.scheduler import AT_ONCE
from sallyport.base.errors import Contradiction, Invalid, StoreError
from tests.areas import Areas
from tests.areas.directory.world import at_work, names, over, person, queue

CONFIGURATION = DirectoryConfiguration(
    "hq", app_url="ldaps://dc1.corp.example, ldaps://dc2.corp.example", settings={"bindDN": "cn=a"}, secret=b"hunter2"
)


class Reader:
    """A reader that returns its people and its unchanged entries at each reading, or raises its error.

    endless: the domains whose readings never end. sources: the source of each reading so far.
    """

    def __init__(self) -> None:
        self.people: list[str] = []
        self.unchanged: list[Unchanged] = []
        self.error: Exception | None = None
        self.endless = set[int]()
        self.sources = list[DirectorySource]()

    @asynccontextmanager
    async def read(
        self, source: DirectorySource, cursor: str, full: bool
    ) -> AsyncGenerator[AsyncIterator[Batch], None]:
        """Implement imports.job.Read."""
        self.sources.append(source)
        if self.error is not None:
            raise self.error

        async def batches() -> AsyncGenerator[Batch, None]:
            people = [_person(name) for name in self.people]
            while source.domain_id in self.endless:
                yield Batch(people, complete=False, cursor="")
                await trio.sleep(0.01)
            yield Batch([*people, *self.unchanged], complete=full, cursor="c")

        async with aclosing(batches()) as found:
            yield found

    @property
    def secrets(self) -> list[str | None]:
        """The bind password of each reading."""
        return [None if each.secret is None else each.secret.reveal().decode() for each in self.sources]


def _person(name: str) -> Person:
    dn = f"uid={name},dc=x"
    return Person(f"dn:{dn}", dn, name, (), Status.ACTIVE, (), {})


@pytest.fixture
def reader(areas: Areas) -> Reader:
    """Return a recording reader that replaces the LDAP reader."""
    reader = Reader()
    areas.directory = DirectoryArea(
        replace(areas.parts, registry=CollectorRegistry()),
        areas.app.domains,
        areas.revocations,
        read={"ldap": reader.read},
        check={},
    )
    return reader


async def import_users(areas: Areas, *, secret: bytes | None = None, **fields: Any) -> Job:
    """Run an importUsers in the domain, and return its finished job."""
    asked = ImportUsers.model_validate({"ldapHost": "dc1.corp.example", "baseDN": "dc=x", "domainID": 1, **fields})
    wanted = [ReadRequest(areas.domain, asked.directoryName, asked.source(), secret, complete=asked.complete)]
    async with at_work(areas):
        return await over(areas, (await areas.directory.directories.import_users(wanted))[0])


async def synced(areas: Areas, *, full: bool = False) -> Job:
    """Run a reading of `hq` with the saved settings, and return its finished job."""
    async with at_work(areas):
        return await over(areas, await areas.directory.directories.sync(areas.domain, "hq", full=full))


async def test_a_secret_is_sent_to_its_directory_only(areas: Areas, reader: Reader) -> None:
    """An importUsers from a host, given by name or address, uses the secret of its request or none. It never uses the
    saved secret.
    """
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
        DirectoryConfiguration("hq", app_url="ldaps://evil.example"),
        DirectoryConfiguration("hq", app_url=""),
        DirectoryConfiguration("hq", kind=DirectoryKind.OKTA),
        DirectoryConfiguration("hq", account_name="cn=b"),
        DirectoryConfiguration("hq", settings={"caCertificate": "another"}),
        DirectoryConfiguration("hq", settings={"startTls": "true"}),
        DirectoryConfiguration("hq", settings={"bindDN": "cn=b"}),
        DirectoryConfiguration("hq", settings={"bindDN": ""}),
        DirectoryConfiguration("hq", settings={"clientId": "b"}),
    ],
)
async def test_a_new_destination_needs_a_new_secret(
    areas: Areas, reader: Reader, changed: DirectoryConfiguration
) -> None:
    """The destination of a secret can be changed only together with the secret. A refusal names the field and changes
    nothing.
    """
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    before = await directories.named(areas.domain, "hq")
    with pytest.raises(Invalid) as refused:
        await directories.save([(areas.domain, DirectoryConfiguration("new")), (areas.domain, changed)])
    assert [each.field for each in refused.value.fields] == ["bindPassword"]
    assert await directories.of_domain(areas.domain) == [before]
    await directories.save([(areas.domain, replace(changed, secret=b"another"))])
    assert (await directories.named(areas.domain, "hq")).secret != before.secret


async def test_other_changes_keep_the_secret(areas: Areas, reader: Reader) -> None:
    """The same settings again, or another base DN of the same directory, need no new secret."""
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    same = {"bindDN": "cn=a", "startTls": "", "caCertificate": None, "baseDN": "dc=y", "filter": "(uid=*)"}
    await directories.save([(areas.domain, replace(CONFIGURATION, secret=None, settings=same))])
    assert (await synced(areas)).state == "DONE"
    assert reader.secrets == ["hunter2"] and reader.sources[0].settings["baseDN"] == "dc=y"


async def test_an_import_that_waits_for_the_store_holds_no_slot(areas: Areas, reader: Reader) -> None:
    """While some imports wait for the store, an import of another domain runs. The waiting imports are not ended."""
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


async def test_endless_readings_do_not_delay_another_tenant(areas: Areas, reader: Reader) -> None:
    """At most AT_ONCE endless readings of one tenant run, so slots are left for another tenant."""
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


async def test_a_reading_has_a_size_limit(areas: Areas, reader: Reader) -> None:
    """An endless reading ends at the size limit, so it cannot fill the disk."""
    reader.endless.add(areas.domain)
    reader.people = ["ann"]
    areas.directory.jobs.collector.largest = 1 << 10
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    job = await synced(areas)
    assert (job.state, job.message) == ("FAILED", "an import reads at most 0 MiB from a directory")
    assert not list((areas.settings.data_dir / "directory").iterdir())


async def test_a_permanent_error_is_not_retried(areas: Areas, reader: Reader) -> None:
    """An import that violates a constraint of the store fails and is not retried. Its message has an error number,
    which the log explains.
    """
    reader.error = Contradiction("UNIQUE constraint failed")
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    job = await synced(areas)
    assert job.state == "FAILED" and job.message.startswith("internal error") and len(reader.sources) == 1


async def test_import_users_removes_people_only_if_complete(areas: Areas, reader: Reader) -> None:
    """importUsers may read only a part of a directory, so missing people are removed only if the request is marked as
    complete.
    """
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


async def test_a_reading_without_people_removes_no_people(areas: Areas, reader: Reader) -> None:
    """A complete reading that finds no people removes no people, and its message states this."""
    reader.people = ["ann"]
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    await synced(areas)
    reader.people = []
    job = await synced(areas, full=True)
    assert (job.state, job.removed, job.message) == ("DONE", 0, "nothing was removed, because the source has no people")
    assert await names(areas) == ["ann"]


async def test_import_users_finds_its_directory_by_host_and_port(areas: Areas, reader: Reader) -> None:
    """If no name is given, importUsers uses the directory that has a server with the same host and port. If the port
    differs, it is another directory.
    """
    directories = areas.directory.directories
    await directories.save([(areas.domain, CONFIGURATION)])
    asked: list[tuple[dict[str, Any], str]] = [
        ({"ldapHost": "DC2.corp.example", "ldapPort": "636"}, "hq"),
        ({"ldapHost": "dc2.corp.example"}, "dc2.corp.example"),
        ({"ldapHost": "dc1.corp.example", "ldapPort": 3269}, "dc1.corp.example"),
    ]
    for fields, meant in asked:
        assert (await import_users(areas, **fields)).directory_name == meant
    await directories.save([(areas.domain, DirectoryConfiguration("dc3", app_url="ldap://dc3"))])
    assert (await import_users(areas, ldapHost="dc3", ldapPort=1389)).directory_name == "dc3:1389"


async def test_a_directory_filled_by_a_file_can_be_read_later(areas: Areas, reader: Reader) -> None:
    """A directory that an LDIF import has created is read by the service when its connection settings have been
    saved.
    """
    reader.people = ["ann"]
    async with at_work(areas):
        await over(areas, await queue(areas, person("ben"), name="hq"))
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    assert (await areas.directory.directories.named(areas.domain, "hq")).kind == "ldap"
    assert (await synced(areas)).state == "DONE" and reader.secrets == ["hunter2"]


async def test_a_new_permanent_identifier_does_not_remove_a_person(areas: Areas, reader: Reader) -> None:
    """If an unchanged entry has an identifier that is not stored yet, the person is found by its name and is kept."""
    reader.people = ["ann", "ben"]
    await areas.directory.directories.save([(areas.domain, CONFIGURATION)])
    await synced(areas)
    reader.people, reader.unchanged = ["ben"], [Unchanged("4d2f8c3c-1dd2-11b2-8a8b-bf5ac0a80001", "uid=ann,dc=x")]
    job = await synced(areas, full=True)
    assert (job.removed, await names(areas)) == (0, ["ann", "ben"])

"""Local operations of directories: directory.import_ldif, directory.jobs, directory.job, directory.groups_by_sid."""

from collections.abc import Callable

import trio

from sallyport.areas.directory.imports.bodies import job_entry
from sallyport.areas.directory.service import Directories
from sallyport.base.errors import SallyportError
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.web.bodies import Text

FindDomain = Callable[[str], int]
"""A function that returns the id of a domain, given the name or the id of the domain. Raises NotFound."""
MAX_SHOWN: int = 1000


class NamedDomain(Arguments):
    """A domain, given by name or id."""

    domain: str


class ImportLdif(NamedDomain):
    """An LDIF file on this machine. directory: the name of the directory that gets the entries (default: LDIF)."""

    path: str
    directory: Text = ""
    complete: bool = False


class NamedBySid(NamedDomain):
    """Groups of a domain, given by their security identifiers (SID)."""

    sids: list[str]


class OneJob(Arguments):
    """An import, given by id."""

    job: int


def local_operations(service: Directories, find_domain: FindDomain) -> LocalOperations:
    """Return the local operations by name."""
    local = LocalOperations()

    @local("directory.import_ldif")
    async def import_ldif(wanted: ImportLdif) -> JSON:
        domain_id = find_domain(wanted.domain)
        file = await trio.to_thread.run_sync(service.files.copy, wanted.path)
        name = wanted.path.rpartition("/")[2]
        try:
            return await service.import_ldif(domain_id, file, name, wanted.directory, complete=wanted.complete)
        except SallyportError:
            await trio.to_thread.run_sync(service.files.delete, file)
            raise

    @local("directory.jobs")
    async def jobs(wanted: NamedDomain) -> JSON:
        return [job_entry(job) for job in await service.jobs.page(find_domain(wanted.domain), 0, MAX_SHOWN)]

    @local("directory.job")
    async def job(wanted: OneJob) -> JSON:
        return job_entry(await service.jobs.get(wanted.job))

    @local("directory.groups_by_sid")
    async def by_sid(wanted: NamedBySid) -> JSON:
        domain_id = find_domain(wanted.domain)
        return dict(await service.groups_by_sid(domain_id, wanted.sids))

    return local

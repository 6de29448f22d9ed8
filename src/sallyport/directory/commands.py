"""What the command line asks: directory.list, show, remove, import_ldif, sync, jobs, cancel, confirm, map,
mappings."""

import json
from collections.abc import Callable

import trio
from pydantic import Field

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.errors import Invalid, NotFound, SallyportError
from sallyport.base.wire import JSON, Row
from sallyport.directory.area import DirectoryArea
from sallyport.directory.directory import Directory
from sallyport.directory.imports.job import Job, Removals
from sallyport.directory.mapping_bodies import FieldMappings
from sallyport.directory.schedule import clock_times, timing_of
from sallyport.directory.schedule_bodies import Every, FullEvery, Times, Zone, timing
from sallyport.directory.service import NO_GROUP
from sallyport.store.search import Stretch
from sallyport.web.scope import Name, Text

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
LARGEST: int = 1 << 30
"""Octets of a file that the command line imports."""
MOST: int = 1000


class OfDomain(Arguments):
    """Of one domain."""

    domain: str


class OneDirectory(OfDomain):
    """A directory of a domain."""

    name: Name


class Sync(OneDirectory):
    """full: all of it, not only what has changed."""

    full: bool = False


class ImportLdif(OfDomain):
    """A file, which the service reads. directory: which one it is of; empty: the domain's `LDIF`."""

    path: str
    directory: Text = ""
    complete: bool = False


class OneJob(Arguments):
    """An import."""

    job: int


class ListJobs(OfDomain):
    """after: how many to pass over."""

    after: int = Field(default=0, ge=0)


class Map(OneDirectory):
    """What becomes which field, for a directory, or for one of its groups."""

    group: Text = ""
    fields: FieldMappings
    apply: bool = False


class SetSchedule(OfDomain):
    """A directory's schedule, as the operation `directory/setSchedule` takes it."""

    name: Name
    every: Every = 0
    times: Times = Field(default_factory=list)
    zone: Zone = "UTC"
    full_every: FullEvery = 24


def commands(area: DirectoryArea, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""
    service, maps, schedules = area.directories, area.mappings, area.schedules

    async def listing(wanted: OfDomain) -> JSON:
        return [_row(each) for each in await service.of_domain(find_domain(wanted.domain))]

    async def show(wanted: OneDirectory) -> JSON:
        directory = await service.named(find_domain(wanted.domain), wanted.name)
        jobs = await service.jobs_named([directory.domain_id], directory.name)
        return {**_row(directory), "jobs": [_job_row(job) for job in jobs]}

    async def remove(wanted: OneDirectory) -> JSON:
        (job,) = await service.remove([(find_domain(wanted.domain), wanted.name)])
        return job

    async def import_ldif(wanted: ImportLdif) -> JSON:
        domain_id = find_domain(wanted.domain)
        file = await trio.to_thread.run_sync(service.files.copy, wanted.path, LARGEST)
        name = wanted.path.rpartition("/")[2]
        try:
            return await service.import_ldif(domain_id, file, name, wanted.directory, complete=wanted.complete)
        except SallyportError:
            await trio.to_thread.run_sync(service.files.delete, file)
            raise

    async def sync(wanted: Sync) -> JSON:
        return await service.sync(find_domain(wanted.domain), wanted.name, full=wanted.full)

    async def jobs(wanted: ListJobs) -> JSON:
        found = await service.jobs.page(find_domain(wanted.domain), wanted.after, MOST)
        return [_job_row(job) for job in found]

    async def job(wanted: OneJob) -> JSON:
        return _job_row(await service.jobs.get(wanted.job))

    async def cancel(wanted: OneJob) -> JSON:
        await service.jobs.cancel(await service.jobs.get(wanted.job))
        return None

    async def confirm(wanted: OneJob) -> JSON:
        await service.jobs.confirm(await service.jobs.get(wanted.job))
        return None

    async def map_fields(wanted: Map) -> JSON:
        directory = await service.named(find_domain(wanted.domain), wanted.name)
        if not wanted.group:
            await maps.set(directory, wanted.fields, apply=wanted.apply)
            return None
        found = await maps.groups_named(directory, wanted.group)
        if len(found) != 1:
            raise Invalid(f"{len(found)} groups have that name") if found else NotFound(NO_GROUP)
        await maps.set(found[0], wanted.fields, apply=wanted.apply)
        return None

    async def mappings(wanted: OfDomain) -> JSON:
        found, _ = await maps.of_domain(Stretch(find_domain(wanted.domain), 0, MOST))
        return [
            {"directory": each.directory_name, "group": each.group_name, "field": field, "attribute": attribute}
            for each in found
            for field, attribute in sorted(each.fields.items())
        ]

    async def set_schedule(wanted: SetSchedule) -> JSON:
        said = timing(wanted.every, wanted.times, wanted.zone, wanted.full_every)
        next_at = await schedules.set(find_domain(wanted.domain), wanted.name, said)
        return iso(next_at) if next_at else ""

    async def schedule_list(wanted: OfDomain) -> JSON:
        return [
            {
                "directory": each.schedule.directory_name,
                "every": each.schedule.every_minutes or "",
                "times": ", ".join(clock_times(timing_of(each.schedule).times)),
                "zone": each.schedule.zone,
                "full_every": each.schedule.full_every,
                "next": iso(each.schedule.next_at),
                "last": each.last.state if each.last is not None else "",
            }
            for each in await schedules.of_domain(find_domain(wanted.domain))
        ]

    return {
        "directory.cancel": command(OneJob, cancel),
        "directory.confirm": command(OneJob, confirm),
        "directory.import_ldif": command(ImportLdif, import_ldif),
        "directory.job": command(OneJob, job),
        "directory.jobs": command(ListJobs, jobs),
        "directory.list": command(OfDomain, listing),
        "directory.map": command(Map, map_fields),
        "directory.mappings": command(OfDomain, mappings),
        "directory.remove": command(OneDirectory, remove),
        "directory.schedule": command(SetSchedule, set_schedule),
        "directory.schedules": command(OfDomain, schedule_list),
        "directory.show": command(OneDirectory, show),
        "directory.sync": command(Sync, sync),
    }


def _row(directory: Directory) -> Row:
    settings: dict[str, JSON] = json.loads(directory.settings)
    return {
        "id": directory.id,
        "name": directory.name,
        "kind": directory.kind,
        "app_url": directory.app_url,
        "account": directory.account_name,
        "settings": settings,
        "secret": directory.secret is not None,
        "mapping": json.loads(directory.mapping),
        "created": iso(directory.created_at),
        "updated": iso(directory.updated_at),
    }


def _job_row(job: Job) -> Row:
    errors: list[JSON] = [f"{where}: {message}" for where, message in json.loads(job.errors)]
    return {
        "id": job.id,
        "directory": job.directory_name,
        "kind": job.kind,
        "state": job.state,
        "file": job.file_name,
        "total": job.total,
        "added": job.added,
        "updated": job.updated,
        "removed": job.removed,
        "skipped": job.skipped,
        "failed": job.failed,
        "message": job.message,
        "needs_confirmation": job.removals == Removals.STOPPED,
        "errors": errors,
        "created": iso(job.created_at),
        "started": None if job.started_at is None else iso(job.started_at),
        "ended": None if job.ended_at is None else iso(job.ended_at),
    }

"""The HTTP operations of directories: the people and groups under /ad/, configuration, imports and mappings."""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Final

from pydantic import SecretStr

from sallyport.base.clock import iso
from sallyport.base.errors import BODY, NotFound, invalid_field
from sallyport.directory.area import DirectoryArea
from sallyport.directory.bodies import (
    DeleteDirectory,
    GroupEntry,
    GroupList,
    ImportLdif,
    ImportStatus,
    ImportUsers,
    JobCounts,
    JobEntry,
    JobError,
    JobList,
    ListGroups,
    ListUsers,
    ListUsersOfGroup,
    OneImport,
    SaveDirectory,
    UserEntry,
    UserList,
)
from sallyport.directory.directory import Directory, Group, Reading, Said, User
from sallyport.directory.imports.files import Uploads
from sallyport.directory.imports.job import OPEN, Job, Removals
from sallyport.directory.mapping_bodies import (
    ListMappings,
    MappingEntry,
    MappingList,
    MappingPreview,
    OfMapping,
    PreviewEntry,
    PreviewMapping,
    ReConfigure,
)
from sallyport.directory.mappings import Mappings
from sallyport.directory.run_bodies import BatchTaken, BeginRun, FinishRun, RunBegun, RunFinished, SendBatch
from sallyport.directory.runs import Runs
from sallyport.directory.schedule import clock_times, timing_of
from sallyport.directory.schedule_bodies import (
    ListSchedules,
    ScheduleEntry,
    ScheduleList,
    ScheduleSet,
    SetSchedule,
    SyncNow,
    SyncQueued,
)
from sallyport.directory.schedules import Schedules, Shown
from sallyport.directory.service import NO_GROUP, Directories
from sallyport.store.search import Minimum, Stretch
from sallyport.web.operation import Done, Operations
from sallyport.web.scope import DIRECTORY_AGENTS, OPERATORS, READERS, Caller, Gate
from sallyport.web.upload import Upload

MOST_ENTRIES: Final = 100
LARGEST_LDIF: Final = 64 << 20
SENDERS: Final = DIRECTORY_AGENTS | OPERATORS
DomainsOf = Callable[[int], Collection[int]]
"""The ids of a tenant's domains."""


def operations(area: DirectoryArea, domains_of: DomainsOf, gate: Gate) -> Operations:
    """The operations of admins."""
    declared = Operations("Directories", gate)
    _declare_lists(declared, area.directories)
    _declare_configuration(declared, area.directories)
    _declare_imports(declared, area.directories, domains_of)
    _declare_mappings(declared, area.mappings, area.directories, domains_of)
    _declare_schedules(declared, area.schedules, area.directories)
    return declared


def agent_operations(service: Runs, gate: Gate) -> Operations:
    """The operations of directory agents."""
    runs = Operations("Directory agent", gate)

    @runs.post("/api/v1/agent/directory/begin", roles=SENDERS)
    async def begin(body: BeginRun, caller: Caller) -> RunBegun:
        """Begin a run: one reading of a directory by its agent, sent in batches. With the runId of a run that is not
        finished it goes on; otherwise such a run of the directory is thrown away."""
        begun = await service.begin(body.domainId, body.directoryName, body.runId)
        return RunBegun(message="run begun", runId=begun.run_id, sequence=begun.sequence, cursor=begun.cursor)

    @runs.post("/api/v1/agent/directory/batch", roles=SENDERS)
    async def batch(body: SendBatch, caller: Caller) -> BatchTaken:
        """Send the next batch of a run, at most 500 entries. One that was taken already is a success. Another than the
        next is 409, with `sequence`, the one that is expected. Nothing is applied before the run is finished."""
        following = await service.take(body.domainId, body.runId, body.sequence, body.entries)
        return BatchTaken(message="batch taken", runId=body.runId, sequence=following)

    @runs.post("/api/v1/agent/directory/finish", roles=SENDERS)
    async def finish(body: FinishRun, caller: Caller) -> RunFinished:
        """Finish a run: an import applies it. With `complete`, what the run has not told of is removed."""
        job_id = await service.finish(body.domainId, body.runId, body.sequence, body.cursor, complete=body.complete)
        return RunFinished(message="import queued", jobId=job_id)

    return runs


def _declare_lists(directories: Operations, service: Directories) -> None:
    @directories.post("/ad/GetAllGroupsByDomain", roles=READERS)
    async def groups_by_domain(body: ListGroups, caller: Caller) -> GroupList:
        """The groups of a domain's directories, ordered by id."""
        page = body.page()
        found, total = await service.groups(Stretch(body.domainId, page.offset, page.size), body.search)
        names = await service.names(body.domainId)
        return GroupList(
            groups=[_group(each, names) for each in found], totalCount=total, totalIsMinimum=isinstance(total, Minimum)
        )

    @directories.post("/ad/GetAllUsersByGroup", roles=READERS)
    async def users_by_group(body: ListUsersOfGroup, caller: Caller) -> UserList:
        """The people in a group and in the groups in it, ordered by id."""
        page = body.page()
        stretch = Stretch(body.domainId, page.offset, page.size)
        return await _people(service, *await service.users_of_group(body.groupId, stretch, body.search))

    @directories.post("/ad/GetAllAdUsers", roles=READERS)
    async def all_users(body: ListUsers, caller: Caller) -> UserList:
        """The people of all of a domain's directories, ordered by id."""
        page = body.page()
        stretch = Stretch(body.domainId, page.offset, page.size)
        return await _people(service, *await service.users(stretch, body.search))

    @directories.post("/ad/GetCloudUsers", roles=READERS)
    async def cloud_users(body: ListUsers, caller: Caller) -> UserList:
        """The people of a domain's cloud directories, ordered by id."""
        page = body.page()
        stretch = Stretch(body.domainId, page.offset, page.size)
        return await _people(service, *await service.users(stretch, body.search, cloud=True))


def _declare_configuration(directories: Operations, service: Directories) -> None:
    @directories.post("/api/v1/saveDirectoryConfig", roles=OPERATORS)
    async def save(body: list[SaveDirectory], caller: Caller) -> str:
        """Set what is said of directories, all or none; one that is not there is made."""
        _check_size(body)
        await service.save([(each.domainId, _said(each)) for each in body])
        return "Directory configuration saved"

    @directories.post("/api/v1/deleteDirectoryConfig", roles=OPERATORS)
    async def delete(body: list[DeleteDirectory], caller: Caller) -> str:
        """Queue the removal of directories, all or none, with their people and groups, and with all that is set of
        them. Whoever only they know loses their access. It is done once the directory is not found any more."""
        _check_size(body)
        jobs = await service.remove([(each.domainId, each.directoryName) for each in body])
        return f"Removal queued: {', '.join(map(str, jobs))}"


def _declare_imports(directories: Operations, service: Directories, domains_of: DomainsOf) -> None:
    @directories.upload(
        "/api/v1/integrations/directory/importLdif",
        roles=OPERATORS,
        form=ImportLdif,
        keeper=Uploads(service.files),
        limit=LARGEST_LDIF,
    )
    async def import_ldif(upload: Upload[ImportLdif], caller: Caller) -> str:
        """Queue the import of an LDIF file (RFC 2849) of at most 64 MiB. A file with an error in it imports nothing."""
        form = upload.form
        name = form.fileName or "".join(filter(str.isprintable, upload.file_name))[:255]
        job = await service.import_ldif(form.domainId, upload.kept, name, form.directoryName, complete=form.complete)
        return f"Import queued: {job}"

    @directories.post("/api/v1/importUsers", roles=OPERATORS)
    async def import_users(body: list[ImportUsers], caller: Caller) -> str:
        """Queue the import of people and groups by LDAP; the bind password is forgotten once it is over."""
        _check_size(body)
        jobs = await service.import_users([_wanted(each) for each in body])
        return f"Import queued: {', '.join(map(str, jobs))}"

    @directories.post("/api/v1/getImportStatus", roles=READERS)
    async def import_status(body: list[ImportStatus], caller: Caller) -> JobList:
        """List the last 20 imports of each directory, newest first. A domain's directoryName selects all its
        directories."""
        _check_size(body)
        found = dict[int, Job]()
        for each in body:
            domains = sorted(domains_of(caller.tenant_id)) if each.domainId is None else [each.domainId]
            jobs = await service.jobs_named(domains, each.DirectoryName)
            found |= {job.id: job for job in jobs}
        jobs = [found[job_id] for job_id in sorted(found, reverse=True)]
        waiting = sum(job.state in OPEN for job in jobs)
        return JobList(message=f"{len(jobs)} import(s), {waiting} not done yet", jobs=[_job(job) for job in jobs])

    @directories.post("/api/v1/cancelImport", roles=OPERATORS)
    async def cancel_import(body: OneImport, caller: Caller) -> Done:
        """Cancel an import that waits or runs; what it has written stays. One that is over is 409."""
        await service.jobs.cancel(await _import(service, body))
        return Done(message="import cancelled")

    @directories.post("/api/v1/confirmImport", roles=OPERATORS)
    async def confirm_import(body: OneImport, caller: Caller) -> Done:
        """Let an import that has stopped before it removes most of what was known (`needsConfirmation`) go on and
        remove it. Another one is 409."""
        await service.jobs.confirm(await _import(service, body))
        return Done(message="import confirmed")


def _declare_mappings(directories: Operations, mappings: Mappings, service: Directories, domains_of: DomainsOf) -> None:
    @directories.post("/api/v1/reConfigure", roles=OPERATORS)
    async def reconfigure(body: ReConfigure, caller: Caller) -> str:
        """Set which attributes become which fields, for a directory or for the people of a group. A field takes one
        attribute, or several as a list or separated by commas; names may have options. It holds for the next import;
        with `apply` it is applied now to the people that are known. Attributes that hold secrets are refused."""
        of = await _of(mappings, service, domains_of, body, caller)
        await mappings.set(of, body.fieldMappings, apply=body.apply)
        return "Field mappings saved, and applied in the background" if body.apply else "Field mappings saved"

    @directories.post("/api/v1/mapping/list", roles=READERS)
    async def list_mappings(body: ListMappings, caller: Caller) -> MappingList:
        """The mappings of a domain: each directory's, and those of the groups that have one."""
        page = body.page()
        found, total = await mappings.of_domain(Stretch(body.domainId, page.offset, page.size))
        entries = [
            MappingEntry(
                directoryName=each.directory_name,
                groupId=each.group_id,
                groupName=each.group_name,
                fieldMappings=dict(each.fields),
            )
            for each in found
        ]
        return MappingList(message=f"{total} mapping(s)", mappings=entries, totalCount=total)

    @directories.post("/api/v1/mapping/preview", roles=READERS)
    async def preview_mapping(body: PreviewMapping, caller: Caller) -> MappingPreview:
        """Ten people's fields as they are, and as they would be; nothing is changed."""
        of = await _of(mappings, service, domains_of, body, caller)
        found = await mappings.preview(of, body.fieldMappings)
        users = [
            PreviewEntry(userId=each.user_id, dn=each.dn, before=dict(each.before), after=dict(each.after))
            for each in found
        ]
        return MappingPreview(message=f"{len(users)} of the people", users=users)


def _declare_schedules(declared: Operations, schedules: Schedules, service: Directories) -> None:
    @declared.post("/api/v1/directory/setSchedule", roles=OPERATORS)
    async def set_schedule(body: SetSchedule, caller: Caller) -> ScheduleSet:
        """Set when a directory is read; without minutes and times, it is read on request alone."""
        next_at = await schedules.set(body.domainId, body.directoryName, body.timing())
        message = "schedule set" if next_at else "schedule deleted"
        return ScheduleSet(message=message, nextRun=iso(next_at) if next_at else "")

    @declared.post("/api/v1/directory/listSchedules", roles=READERS)
    async def list_schedules(body: ListSchedules, caller: Caller) -> ScheduleList:
        """When the directories of a domain are read, and how the last import of each went."""
        found = [_entry(each) for each in await schedules.of_domain(body.domainId)]
        return ScheduleList(message=f"{len(found)} schedule(s)", schedules=found)

    @declared.post("/api/v1/directory/sync", roles=OPERATORS)
    async def sync(body: SyncNow, caller: Caller) -> SyncQueued:
        """Read a directory now, in the background; one that waits already is the one. Its end is in getImportStatus."""
        job_id = await service.sync(body.domainId, body.directoryName, full=body.full)
        return SyncQueued(message="import queued", jobId=job_id)


async def _import(service: Directories, body: OneImport) -> Job:
    """NotFound: it is none of the domain's."""
    job = await service.jobs.get(body.jobId)
    if job.domain_id != body.domainId:
        raise NotFound("import not found")
    return job


def _check_size(body: Sequence[object]) -> None:
    if not 1 <= len(body) <= MOST_ENTRIES:
        raise invalid_field(BODY, f"an array of 1 to {MOST_ENTRIES} entries")


async def _of(
    mappings: Mappings, service: Directories, domains_of: DomainsOf, body: OfMapping, caller: Caller
) -> Directory | Group:
    """What a mapping is for. NotFound."""
    if body.groupID is None:
        return await service.named(body.domainId or 0, body.directoryName)
    group = await mappings.group(body.groupID)
    if group.domain_id not in domains_of(caller.tenant_id) or body.domainId not in (None, group.domain_id):
        raise NotFound(NO_GROUP)
    return group


async def _people(service: Directories, users: Sequence[User], total: int) -> UserList:
    groups = await service.groups_of(users)
    return UserList(
        users=[_user(*each) for each in zip(users, groups, strict=True)],
        totalCount=total,
        totalIsMinimum=isinstance(total, Minimum),
    )


def _user(user: User, groups: list[str]) -> UserEntry:
    return UserEntry(
        userId=user.id,
        userName=user.name,
        displayName=user.display_name,
        email=user.email,
        upn=user.upn,
        dn=user.dn,
        status=user.status,
        source=user.source,
        groups=groups,
        directoryName=user.directory_name,
        fields=json.loads(user.fields),
    )


def _group(group: Group, names: dict[int, str]) -> GroupEntry:
    return GroupEntry(
        groupId=group.id,
        groupName=group.name,
        dn=group.dn,
        memberCount=group.members,
        directoryName=names.get(group.directory_id, ""),
    )


def _said(body: SaveDirectory) -> Said:
    return Said(
        name=body.directoryName,
        kind=body.kind,
        account_name=body.accountName,
        app_url=body.appUrl,
        settings=body.settings(),
        secret=_octets(body.secret),
    )


def _wanted(body: ImportUsers) -> Reading:
    secret = _octets(body.bindPassword)
    return Reading(body.domainID, body.directoryName, body.source(), secret, complete=body.complete)


def _octets(secret: SecretStr | None) -> bytes | None:
    return None if secret is None or not secret.get_secret_value() else secret.get_secret_value().encode()


def _job(job: Job) -> JobEntry:
    times = [iso(at) if at is not None else "" for at in (job.created_at, job.started_at, job.ended_at)]
    return JobEntry(
        jobId=job.id,
        domainId=job.domain_id,
        directoryName=job.directory_name,
        kind=job.kind,
        state=job.state,
        fileName=job.file_name,
        counts=JobCounts(
            total=job.total,
            added=job.added,
            updated=job.updated,
            removed=job.removed,
            skipped=job.skipped,
            failed=job.failed,
        ),
        errors=[JobError(where=where, message=message) for where, message in json.loads(job.errors)],
        message=job.message,
        needsConfirmation=job.removals == Removals.STOPPED,
        createdAt=times[0],
        startedAt=times[1],
        endedAt=times[2],
    )


def _entry(shown: Shown) -> ScheduleEntry:
    timing, last = timing_of(shown.schedule), shown.last
    return ScheduleEntry(
        directoryName=shown.schedule.directory_name,
        everyMinutes=timing.every_minutes,
        timesOfDay=clock_times(timing.times),
        timeZone=timing.zone,
        fullEvery=timing.full_every,
        nextRun=iso(shown.schedule.next_at),
        lastJobId=last.id if last is not None else 0,
        lastState=last.state if last is not None else "",
        lastEnd=iso(last.ended_at) if last is not None and last.ended_at is not None else "",
    )

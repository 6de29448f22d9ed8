"""The operations of directories: people and groups, configuration, imports, mappings, schedules, and the entries from
directory agents."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias, TypeVar

from pydantic import SecretStr

from sallyport.areas.directory.bodies import (
    CheckDirectory,
    DeleteDirectory,
    DirectoryChecked,
    DirectoryGroupList,
    DirectoryList,
    DirectoryUserList,
    ImportLdif,
    ImportUsers,
    ListDirectories,
    ListDirectoryGroups,
    ListDirectoryUsers,
    ListUsersOfDirectoryGroup,
    SaveDirectory,
)
from sallyport.areas.directory.directory import Directory, DirectoryConfiguration, Group, ReadRequest, User
from sallyport.areas.directory.imports.bodies import ImportStatus, JobList, OneImport, job_entry
from sallyport.areas.directory.imports.files import Uploads
from sallyport.areas.directory.imports.job import OPEN, Job
from sallyport.areas.directory.mappings.bodies import (
    ListMappings,
    MappingList,
    MappingPreview,
    OfMapping,
    PreviewMapping,
    ReConfigure,
)
from sallyport.areas.directory.mappings.service import Mappings
from sallyport.areas.directory.runs.bodies import BatchTaken, BeginRun, FinishRun, RunBegun, RunFinished, SendBatch
from sallyport.areas.directory.runs.service import Runs
from sallyport.areas.directory.schedules.bodies import (
    ListSchedules,
    ScheduleList,
    ScheduleSet,
    SetSchedule,
    SyncNow,
    SyncQueued,
)
from sallyport.areas.directory.schedules.service import Schedules
from sallyport.areas.directory.service import NO_GROUP, Directories, DirectoryTrials
from sallyport.base.answer import answer, answers
from sallyport.base.clock import iso_or_empty
from sallyport.base.errors import BODY, NotFound, invalid_field
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import Minimum, mapping
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import DIRECTORY_AGENTS, OPERATORS, READERS, Caller, Gate
from sallyport.web.upload import Upload

AnswerT = TypeVar("AnswerT")
ListBody: TypeAlias = ListDirectoryGroups | ListDirectoryUsers | ListMappings

MAX_ENTRIES: Final = 100
MAX_LDIF_SIZE: Final = 64 << 20
SENDERS: Final = DIRECTORY_AGENTS | OPERATORS
DomainsOf = Callable[[int], Collection[int]]
"""Return the ids of a tenant's domains."""


def operations(
    service: Directories,
    trials: DirectoryTrials,
    mappings: Mappings,
    schedules: Schedules,
    domains_of: DomainsOf,
    gate: Gate,
) -> Operations:
    """Declare the operations for admins."""
    declared = Operations("Directories", gate)
    _declare_lists(declared, service)
    _declareconfiguration_of(declared, service, trials)
    _declare_imports(declared, service, domains_of)
    _declare_mappings(declared, mappings, service, domains_of)
    _declare_schedules(declared, schedules, service)
    return declared


def agent_operations(service: Runs, gate: Gate) -> Operations:
    """Declare the operations for directory agents."""
    runs = Operations("Directory agent", gate)

    @runs.post("/api/v1/agent/directory/begin", roles=SENDERS)
    async def begin(body: BeginRun, caller: Caller) -> RunBegun:
        """Begin a run. In a run, a directory agent sends batches with the entries of a directory or with their changes.
        To continue an open run, give its runId. Without the runId of an open run, a new run begins, and an open run of
        the directory is discarded."""
        begun = await service.begin(body.domainId, body.directoryName, body.runId)
        return RunBegun(message="run begun", runId=begun.run_id, sequence=begun.sequence, cursor=begun.cursor)

    @runs.post("/api/v1/agent/directory/batch", roles=SENDERS)
    async def batch(body: SendBatch, caller: Caller) -> BatchTaken:
        """Send the next batch of a run, with at most 500 entries. A stored batch may be sent again. If the batch has
        the wrong number, the status is 409, and `sequence` in the answer is the right number. The import of the entries
        begins only after the run is finished."""
        following = await service.take(body.domainId, body.runId, body.sequence, body.entries)
        return BatchTaken(message="batch taken", runId=body.runId, sequence=following)

    @runs.post("/api/v1/agent/directory/finish", roles=SENDERS)
    async def finish(body: FinishRun, caller: Caller) -> RunFinished:
        """Finish a run and queue the import of its entries. If `complete` is true, the import removes the stored
        entries that the agent has not sent."""
        job_id = await service.finish(body.domainId, body.runId, body.sequence, body.cursor, complete=body.complete)
        return RunFinished(message="import queued", jobId=job_id)

    return runs


def _declare_lists(declared: Operations, service: Directories) -> None:
    @declared.post("/ad/GetAllGroupsByDomain", roles=READERS)
    async def groups_by_domain(body: ListDirectoryGroups, caller: Caller) -> Plain[DirectoryGroupList]:
        """List the groups of a domain's directories, or of one directory, ordered by id."""
        found, total = await service.groups(_list_query(body), body.search, body.directoryId)
        names = await service.names(body.domainId)
        return Plain({"groups": answers(found, directory_names=names), **_total(total)})

    @declared.post("/ad/GetAllUsersByGroup", roles=READERS)
    async def users_by_group(body: ListUsersOfDirectoryGroup, caller: Caller) -> Plain[DirectoryUserList]:
        """List the people in a group and its nested groups, ordered by id."""
        return await _people(service, *await service.users_of_group(body.groupId, _list_query(body), body.search))

    @declared.post("/ad/GetAllAdUsers", roles=READERS)
    async def all_users(body: ListDirectoryUsers, caller: Caller) -> Plain[DirectoryUserList]:
        """List the people of all directories of a domain, ordered by id."""
        return await _people(service, *await service.users(_list_query(body), body.search))

    @declared.post("/ad/GetCloudUsers", roles=READERS)
    async def cloud_users(body: ListDirectoryUsers, caller: Caller) -> Plain[DirectoryUserList]:
        """List the people of a domain's cloud directories, ordered by id."""
        return await _people(service, *await service.users(_list_query(body), body.search, cloud=True))


def _declareconfiguration_of(declared: Operations, service: Directories, trials: DirectoryTrials) -> None:
    @declared.post("/api/v1/directory/list", roles=READERS)
    async def directories(body: ListDirectories, caller: Caller) -> Plain[DirectoryList]:
        """List the directories of a domain with their settings, without secrets, ordered by id."""
        found, page = await service.of_domain(body.domainId), body.page()
        shown = answers(found[page.offset : page.offset + page.size])
        return _success(counted(len(found), "directory", "directories"), directories=shown, totalCount=len(found))

    @declared.post("/api/v1/directory/check", roles=OPERATORS)
    async def check(body: CheckDirectory, caller: Caller) -> DirectoryChecked:
        """Test a directory: connect, log in, and read the first accounts. If a setting is not given, the test uses the
        stored setting. Nothing is stored. The status is 429 if a domain makes more than five tests in a minute."""
        if not caller.is_installation:
            trials.admit(body.domainId)
        tried = await trials.run(body.domainId, configuration_of(body))
        advice = trials.advice(body.domainId) if caller.is_installation and ADDRESS_NOT_ALLOWED in tried.message else []
        return DirectoryChecked(message="; ".join([tried.message, *advice]), usable=tried.usable)

    @declared.post("/api/v1/saveDirectoryConfig", roles=OPERATORS)
    async def save(body: list[SaveDirectory], caller: Caller) -> str:
        """Set the given fields of directories. A directory that does not exist is created. If one directory cannot be
        saved, nothing is changed."""
        _check_size(body)
        await service.save([(each.domainId, configuration_of(each)) for each in body])
        return "Directory configuration saved"

    @declared.post("/api/v1/deleteDirectoryConfig", roles=OPERATORS)
    async def delete(body: list[DeleteDirectory], caller: Caller) -> str:
        """Queue the removal of directories with their people, groups and settings. If one of the directories cannot be
        removed, none is removed. People who are in no other directory lose their access. A directory stays in the list
        until its removal has ended."""
        _check_size(body)
        jobs = await service.remove([(each.domainId, each.directoryName) for each in body])
        return f"Removal queued: {', '.join(map(str, jobs))}"


def _declare_imports(declared: Operations, service: Directories, domains_of: DomainsOf) -> None:
    @declared.upload(
        "/api/v1/integrations/directory/importLdif",
        roles=OPERATORS,
        form=ImportLdif,
        keeper=Uploads(service.files),
        limit=MAX_LDIF_SIZE,
    )
    async def import_ldif(upload: Upload[ImportLdif], caller: Caller) -> str:
        """Queue the import of an LDIF file (RFC 2849) of at most 64 MiB. If the file has an error, nothing is
        imported."""
        form = upload.form
        name = form.fileName or "".join(filter(str.isprintable, upload.file_name))[:255]
        job = await service.import_ldif(form.domainId, upload.kept, name, form.directoryName, complete=form.complete)
        return f"Import queued: {job}"

    @declared.post("/api/v1/importUsers", roles=OPERATORS)
    async def import_users(body: list[ImportUsers], caller: Caller) -> str:
        """Queue the import of people and groups from LDAP servers. The bind password is deleted when the import has
        ended."""
        _check_size(body)
        jobs = await service.import_users([_reading(each) for each in body])
        return f"Import queued: {', '.join(map(str, jobs))}"

    @declared.post("/api/v1/getImportStatus", roles=READERS)
    async def import_status(body: list[ImportStatus], caller: Caller) -> Plain[JobList]:
        """List the last 20 imports of each given directory, newest first. If the given name is the directoryName of a
        domain, list the imports of all directories of this domain."""
        _check_size(body)
        found = dict[int, Job]()
        for each in body:
            domains = sorted(domains_of(caller.tenant_id)) if each.domainId is None else [each.domainId]
            jobs = await service.jobs_named(domains, each.DirectoryName)
            found |= {job.id: job for job in jobs}
        jobs = [found[job_id] for job_id in sorted(found, reverse=True)]
        waiting = sum(job.state in OPEN for job in jobs)
        message = f"{counted(len(jobs), 'import')}, {waiting} not done yet"
        return Plain({"message": message, "status": "Success", "jobs": [job_entry(job) for job in jobs]})

    @declared.post("/api/v1/cancelImport", roles=OPERATORS)
    async def cancel_import(body: OneImport, caller: Caller) -> Done:
        """Cancel an import that is queued or running. Entries that the import has already written are kept. The status
        is 409 if the import has ended."""
        await service.jobs.cancel(await _import(service, body))
        return Done(message="import cancelled")

    @declared.post("/api/v1/confirmImport", roles=OPERATORS)
    async def confirm_import(body: OneImport, caller: Caller) -> Done:
        """Continue an import that has stopped because it would remove most of the directory (`needsConfirmation`). The
        status is 409 if the import does not wait for a confirmation."""
        await service.jobs.confirm(await _import(service, body))
        return Done(message="import confirmed")


def _declare_mappings(declared: Operations, mappings: Mappings, service: Directories, domains_of: DomainsOf) -> None:
    @declared.post("/api/v1/reConfigure", roles=OPERATORS)
    async def reconfigure(body: ReConfigure, caller: Caller) -> str:
        """Set which attributes fill the fields of people. The mapping applies to a directory, or only to the people of
        a group. A field takes one attribute or several attributes, which are given as a list or as a text with commas.
        Attribute names may have options. The mapping takes effect with the next import. With `apply`, the stored people
        are also updated now. Attributes that hold secrets are refused."""
        of = await _mapping_owner(mappings, service, domains_of, body, caller)
        await mappings.set(of, body.fieldMappings, apply=body.apply)
        return (
            "The field mappings are saved. They are applied in the background."
            if body.apply
            else "The field mappings are saved."
        )

    @declared.post("/api/v1/mapping/list", roles=READERS)
    async def list_mappings(body: ListMappings, caller: Caller) -> Plain[MappingList]:
        """List the mappings of a domain: the mapping of each directory, and the mappings of groups."""
        found, total = await mappings.of_domain(_list_query(body))
        return _success(counted(total, "mapping"), mappings=list(map(mapping, found)), totalCount=total)

    @declared.post("/api/v1/mapping/preview", roles=READERS)
    async def preview_mapping(body: PreviewMapping, caller: Caller) -> Plain[MappingPreview]:
        """Show the fields of at most ten people before and after a change of the mapping. Nothing is stored."""
        of = await _mapping_owner(mappings, service, domains_of, body, caller)
        found = await mappings.preview(of, body.fieldMappings)
        return _success(counted(len(found), "person", "people"), users=list(map(mapping, found)))


def _declare_schedules(declared: Operations, schedules: Schedules, service: Directories) -> None:
    @declared.post("/api/v1/directory/setSchedule", roles=OPERATORS)
    async def set_schedule(body: SetSchedule, caller: Caller) -> ScheduleSet:
        """Set the schedule of a directory. Without minutes and times, the directory is read only on request."""
        next_at = await schedules.set(body.domainId, body.directoryName, body.timing())
        message = "schedule set" if next_at else "schedule deleted"
        return ScheduleSet(message=message, nextRun=iso_or_empty(next_at))

    @declared.post("/api/v1/directory/listSchedules", roles=READERS)
    async def list_schedules(body: ListSchedules, caller: Caller) -> Plain[ScheduleList]:
        """List the schedules of a domain's directories, with the result of each directory's last import."""
        found = [
            {
                **answer(schedule),
                "lastJobId": last.id if last is not None else 0,
                "lastState": last.state if last is not None else "",
                "lastEnd": iso_or_empty(last.ended_at if last is not None else None),
            }
            for schedule, last in await schedules.of_domain(body.domainId)
        ]
        return _success(counted(len(found), "schedule"), schedules=found)

    @declared.post("/api/v1/directory/sync", roles=OPERATORS)
    async def sync(body: SyncNow, caller: Caller) -> SyncQueued:
        """Queue a job that reads a directory. If such a job is already queued, no other job is queued. getImportStatus
        shows the result of the job."""
        job_id = await service.sync(body.domainId, body.directoryName, full=body.full)
        return SyncQueued(message="import queued", jobId=job_id)


async def _import(service: Directories, body: OneImport) -> Job:
    """Return an import of the body's domain. Raises NotFound."""
    job = await service.jobs.get(body.jobId)
    if job.domain_id != body.domainId:
        raise NotFound("import not found")
    return job


def _check_size(body: Sequence[object]) -> None:
    if not 1 <= len(body) <= MAX_ENTRIES:
        raise invalid_field(BODY, f"must be an array of 1 to {MAX_ENTRIES} entries")


async def _mapping_owner(
    mappings: Mappings, service: Directories, domains_of: DomainsOf, body: OfMapping, caller: Caller
) -> Directory | Group:
    """Return the directory or group that a body refers to. Raises NotFound."""
    if body.groupID is None:
        return await service.named(body.domainId or 0, body.directoryName)
    group = await mappings.group(body.groupID)
    if group.domain_id not in domains_of(caller.tenant_id) or body.domainId not in (None, group.domain_id):
        raise NotFound(NO_GROUP)
    return group


def _list_query(body: ListBody) -> ListQuery:
    page = body.page()
    return ListQuery(body.domainId, page.offset, page.size)


def _total(total: int) -> dict[str, object]:
    return {"totalCount": total, **({"totalIsMinimum": True} if isinstance(total, Minimum) else {})}


def _success(message: str, **fields: object) -> Plain[AnswerT]:
    return Plain({"code": 200, "status": "Success", "message": message, **fields})


async def _people(service: Directories, users: Sequence[User], total: int) -> Plain[DirectoryUserList]:
    groups_of = dict(zip([user.id for user in users], await service.groups_of(users), strict=True))
    return Plain({"users": answers(users, groups_of=groups_of), **_total(total)})


def configuration_of(body: SaveDirectory) -> DirectoryConfiguration:
    return DirectoryConfiguration(
        name=body.directoryName,
        kind=body.kind,
        account_name=body.accountName,
        app_url=body.appUrl,
        settings=body.settings(),
        secret=_octets(body.secret),
    )


def _reading(body: ImportUsers) -> ReadRequest:
    secret = _octets(body.bindPassword)
    return ReadRequest(body.domainID, body.directoryName, body.source(), secret, complete=body.complete)


def _octets(secret: SecretStr | None) -> bytes | None:
    return None if secret is None or not secret.get_secret_value() else secret.get_secret_value().encode()

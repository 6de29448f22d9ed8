"""Convert directories, people, groups, imports and schedules to the values that the operations of the API return."""

import json

from sallyport.areas.directory.bodies import JobCounts
from sallyport.areas.directory.directory import Directory, Group, User
from sallyport.areas.directory.imports.job import Job, Removals
from sallyport.areas.directory.schedules.schedule import clock_times, timing_of
from sallyport.areas.directory.schedules.service import Shown
from sallyport.base.clock import iso
from sallyport.base.wire import Row


def directory_entry(directory: Directory) -> dict[str, object]:
    """Return a directory as the fields of `DirectoryEntry`."""
    return {
        "directoryId": directory.id,
        "directoryName": directory.name,
        "kind": directory.kind,
        "appUrl": directory.app_url,
        "accountName": directory.account_name,
        "settings": json.loads(directory.settings),
        "hasSecret": directory.secret is not None,
        "fieldMappings": json.loads(directory.mapping),
        "createdAt": iso(directory.created_at),
        "updatedAt": iso(directory.updated_at),
    }


def user_entry(user: User, groups: list[str]) -> dict[str, object]:
    """Return a person as the fields of `DirectoryUser`. groups: names of the person's groups."""
    return {
        "userId": user.id,
        "userName": user.name,
        "displayName": user.display_name,
        "email": user.email,
        "upn": user.upn,
        "dn": user.dn,
        "status": user.status,
        "source": user.source,
        "groups": groups,
        "directoryName": user.directory_name,
        "fields": json.loads(user.fields),
    }


def group_entry(group: Group, names: dict[int, str]) -> dict[str, object]:
    """Return a group as the fields of `DirectoryGroup`. names: the names of the directories, by directory id."""
    return {
        "groupId": group.id,
        "groupName": group.name,
        "dn": group.dn,
        "memberCount": group.members,
        "directoryName": names.get(group.directory_id, ""),
    }


def job_entry(job: Job) -> Row:
    """Return an import as the fields of `JobEntry`."""
    return {
        "jobId": job.id,
        "domainId": job.domain_id,
        "directoryName": job.directory_name,
        "kind": job.kind,
        "state": job.state,
        "fileName": job.file_name,
        "counts": {name: getattr(job, name) for name in JobCounts.model_fields},
        "errors": [{"where": where, "message": message} for where, message in json.loads(job.errors)],
        "message": job.message,
        "needsConfirmation": job.removals == Removals.STOPPED,
        "createdAt": iso(job.created_at),
        "startedAt": _iso(job.started_at),
        "endedAt": _iso(job.ended_at),
    }


def schedule_entry(shown: Shown) -> dict[str, object]:
    """Return a schedule as the fields of `ScheduleEntry`."""
    timing, last = timing_of(shown.schedule), shown.last
    return {
        "directoryName": shown.schedule.directory_name,
        "everyMinutes": timing.every_minutes,
        "timesOfDay": clock_times(timing.times),
        "timeZone": timing.zone,
        "fullEvery": timing.full_every,
        "nextRun": iso(shown.schedule.next_at),
        "lastJobId": last.id if last is not None else 0,
        "lastState": last.state if last is not None else "",
        "lastEnd": _iso(last.ended_at) if last is not None else "",
    }


def _iso(at: int | None) -> str:
    return iso(at) if at is not None else ""

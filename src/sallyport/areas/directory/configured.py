"""Directories in files (`sallyport apply`), with their field mappings and schedules.

People, groups and units are what the service has read, and have no files. The mapping of a group is by the name of the
group, so that a file has it before the group is read.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from sallyport.areas.configured import Change, Fields, Kind, Stored
from sallyport.areas.directory import repo
from sallyport.areas.directory.configured_bodies import ConfiguredDirectory
from sallyport.areas.directory.directory import DirectoryConfiguration, kind_of
from sallyport.areas.directory.mappings.service import Mappings
from sallyport.areas.directory.operations import configuration_of
from sallyport.areas.directory.reading.okta import key_flaw
from sallyport.areas.directory.schedules.bodies import timing
from sallyport.areas.directory.schedules.schedule import Timing, clock_times
from sallyport.areas.directory.schedules.service import Schedules, check_timing
from sallyport.areas.directory.service import Directories
from sallyport.areas.directory.stored import repo as entries
from sallyport.base.errors import invalid_field
from sallyport.base.text import fold
from sallyport.store.model import Tx

SECRET, MAPPINGS, GROUPS, SCHEDULE = "secret", "fieldMappings", "groupMappings", "schedule"
RECONFIGURE: Final = "/api/v1/reConfigure"
_FLAGS: Final = ("startTls", "readDevices")
_OTHERS: Final = ("accountName", "appUrl", "baseDN", "filter", "bindDN", "caCertificate", "tenant", "clientId")


class DirectoryKind(Kind[ConfiguredDirectory]):
    """Directories."""

    name = "directory"
    body = ConfiguredDirectory
    key = "directoryName"
    refers = "domain"
    keeps = frozenset({SECRET})
    texts = frozenset({"caCertificate"})
    destinations = frozenset({"accountName", "appUrl", "bindDN", "startTls", "caCertificate", "clientId"})
    has_text_secrets = True
    removed_first = False
    names = (
        "select g.id, g.domain_id as owner, d.name from directory_groups g join directories d on d.id = g.directory_id"
    )
    listed_by = ("/api/v1/directory/list", "directories")
    changed_by = MappingProxyType(
        {
            "/api/v1/saveDirectoryConfig": "directoryName",
            "/api/v1/directory/setSchedule": "directoryName",
            RECONFIGURE: "directoryName",
            "/api/v1/deleteDirectoryConfig": "directoryName",
        }
    )

    def __init__(self, service: Directories, mappings: Mappings, schedules: Schedules) -> None:
        self._service = service
        self._mappings = mappings
        self._schedules = schedules

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            schedules = {each.directory_id: each for each in repo.schedules_of_domain(tx, domain_id)}
            for each, secret in self._service.read(tx, domain_id):
                fields: dict[str, object] = {"domain": domain, "directoryName": each.name, "kind": each.kind}
                fields |= {"accountName": each.account_name, "appUrl": each.app_url, **json.loads(each.settings)}
                fields[MAPPINGS] = json.loads(each.mapping)
                of_groups = entries.named_mappings(tx, each.id)
                fields[GROUPS] = [{"groupName": name, MAPPINGS: own} for name, own in of_groups.items()]
                if each.id in schedules:
                    own = schedules[each.id]
                    fields[SCHEDULE] = _shown(own.every_minutes, clock_times(own.times), own.zone, own.full_every)
                yield Stored(each.name, {**fields, SECRET: {"hex": secret.hex()}} if secret else fields)

    def values(self, body: ConfiguredDirectory) -> dict[str, object]:
        at = _timing(body)
        return {
            "kind": body.kind or kind_of(body.appUrl or ""),
            **{name: getattr(body, name) or "" for name in _OTHERS},
            **{name: bool(getattr(body, name)) for name in _FLAGS},
            MAPPINGS: _given(body.fieldMappings),
            GROUPS: {fold(name): own for name, own in _of_groups(body).items()},
            SCHEDULE: at and _shown(at.every_minutes, clock_times(_minutes(at)), at.zone, at.full_every),
            SECRET: body.secret,
        }

    def selector(self, path: str, body: Fields) -> str:
        return "groupID" if path == RECONFIGURE and body.get("groupID") else super().selector(path, body)

    def check(self, body: ConfiguredDirectory, before: Stored | None) -> None:
        if len({fold(each.groupName) for each in body.groupMappings}) < len(body.groupMappings):
            raise invalid_field(GROUPS, "must have each group once")
        if at := _timing(body):
            check_timing(body.kind or kind_of(body.appUrl or ""), at)

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ConfiguredDirectory]]) -> None:
        for each in changes:
            if each.body is None:
                self._service.remove_in(tx, each.domain_id, str(each.before.id) if each.before else "")
                continue
            body, values = each.body, self.values(each.body)
            given = _configuration(body, values)
            directory = self._service.save_in(tx, each.domain_id, given, key_flaw(given.secret or b""))
            if MAPPINGS in each.fields:
                fields = {**dict.fromkeys(json.loads(directory.mapping), ""), **body.fieldMappings}
                entries.must_fit(tx, directory.id, fields)
                self._mappings.set_in(tx, directory, fields)
            if GROUPS in each.fields:
                self._mappings.set_groups_in(tx, directory, _of_groups(body))
            if SCHEDULE in each.fields and (_timing(body) or each.before):
                self._schedules.set_in(tx, each.domain_id, directory.name, _timing(body))

    def written(self) -> None:
        self._service.jobs.wake()
        self._schedules.wake()


def _configuration(body: ConfiguredDirectory, values: Mapping[str, object]) -> DirectoryConfiguration:
    """Return all values of a directory. An absent field is cleared. An absent secret stays."""
    settings = {name: value or "" for name, value in body.settings().items()}
    given = replace(configuration_of(body), settings=settings)
    return replace(given, account_name=body.accountName or "", app_url=body.appUrl or "", kind=values["kind"])  # type: ignore[arg-type]


def _given(mapping: Mapping[str, str]) -> dict[str, str]:
    return {name: taken for name, taken in mapping.items() if taken}


def _of_groups(body: ConfiguredDirectory) -> dict[str, dict[str, str]]:
    """Return the mapping of each group that has one, by its name."""
    return {each.groupName: own for each in body.groupMappings if (own := _given(each.fieldMappings))}


def _timing(body: ConfiguredDirectory) -> Timing | None:
    given = body.schedule
    return timing(given.everyMinutes, given.timesOfDay, given.timeZone, given.fullEvery) if given else None


def _minutes(at: Timing) -> str:
    return ",".join(map(str, at.times))


def _shown(every: int, times: Sequence[str], zone: str, full_every: int) -> dict[str, object]:
    return {"everyMinutes": every, "timesOfDay": [*times], "timeZone": zone, "fullEvery": full_every}

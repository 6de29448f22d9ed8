"""What the directory agent says to the service, in JSON: entries, and how they are cut into bodies.

    POST /api/v1/agent/directory/begin   {domainId, directoryName, runId?}
        -> {runId, sequence, cursor}     sequence: of the next batch; cursor: of the last run that was applied
    POST /api/v1/agent/directory/batch   {domainId, runId, sequence, entries: [...]}
        -> {runId, sequence}
    POST /api/v1/agent/directory/finish  {domainId, runId, sequence, complete, cursor}
        -> {jobId}                       sequence: as before, one behind the last batch

Nothing is applied before `finish`; then an import does, like that of a file. A batch that was sent already is a
success, with the number of the next, so that an agent whose answer was lost sends it again. A number too high is 409
with `sequence`, the one that is expected; a run that is not there any more is 404: begin anew. `begin` with the runId
of a run that is still open goes on with it; any other throws an open run of the directory away.

Pure: for the agent, which has neither store nor web.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sallyport.directory.entry import Entry, Gone, Group, Person, Problem, Unchanged, Unit

if TYPE_CHECKING:
    from sallyport.base.wire import JSON

MOST_ENTRIES: Final = 500
MOST_OCTETS: Final = 192 << 10
"""Of the entries of one batch, as JSON: to read so much holds the service up for 2 ms."""
MOST_MEMBERS: Final = 500
"""Of one entry; the others follow in entries of the same group with `continued`, right behind it."""


def batches(entries: Iterable[Entry]) -> Iterator[list[dict[str, JSON]]]:
    """The entries of a run, cut into batches."""
    batch: list[dict[str, JSON]] = []
    octets = 0
    for entry in entries:
        for wire in to_wire(entry):
            size = len(json.dumps(wire))
            if batch and (len(batch) == MOST_ENTRIES or octets + size > MOST_OCTETS):
                yield batch
                batch, octets = [], 0
            batch.append(wire)
            octets += size
    if batch:
        yield batch


def to_wire(entry: Entry) -> Iterator[dict[str, JSON]]:
    """An entry as JSON carries it; a large group in several."""
    match entry:
        case Person():
            yield {
                "kind": "person",
                "externalId": entry.external_id,
                "dn": entry.dn,
                "name": entry.name,
                "aliases": list(entry.aliases),
                "status": entry.status.value,
                "memberOf": list(entry.member_of),
                "attributes": {name: list(values) for name, values in entry.attributes.items()},
                "primaryGroup": entry.primary_group,
            }
        case Group():
            for at in range(0, max(1, len(entry.members)), MOST_MEMBERS):
                part = replace(entry, members=entry.members[at : at + MOST_MEMBERS])
                yield _group(part, continued=at > 0)
        case Unit():
            yield {"kind": "unit", "externalId": entry.external_id, "dn": entry.dn, "name": entry.name}
        case Unchanged():
            status = None if entry.status is None else entry.status.value
            yield {"kind": "unchanged", "externalId": entry.external_id, "dn": entry.dn, "status": status}
        case Gone():
            yield {"kind": "gone", "externalId": entry.external_id, "dn": entry.dn}
        case Problem():
            yield {"kind": "problem", "externalId": entry.external_id, "dn": entry.dn, "message": entry.message}


def _group(group: Group, *, continued: bool) -> dict[str, JSON]:
    return {
        "kind": "group",
        "externalId": group.external_id,
        "dn": group.dn,
        "name": group.name,
        "members": list(group.members),
        "key": group.key,
        "continued": continued,
    }

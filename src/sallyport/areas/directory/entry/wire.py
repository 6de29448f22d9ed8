"""The JSON form of entries. It is used in the batches of a directory agent, and in the file that collects the entries
of a reading.

    POST /api/v1/agent/directory/begin   {domainId, directoryName, runId?}
        -> {runId, sequence, cursor}     number of the next batch; cursor of the last run that was applied
    POST /api/v1/agent/directory/batch   {domainId, runId, sequence, entries: [...]}
        -> {runId, sequence}             number of the next batch
    POST /api/v1/agent/directory/finish  {domainId, runId, sequence, complete, cursor}
        -> {jobId}                       in the request, sequence is the number of the last batch plus 1

Nothing is applied before `finish`. Then an import job applies all batches.

If the agent gets no answer to a batch, it sends the batch again. If the batch is already stored, the answer is a
success with the number of the next batch. If the number of a batch is too high, the answer is 409, and `sequence` is
the expected number. If the run is unknown, the answer is 404, and the agent begins a new run. If `begin` has the runId
of an open run, it continues this run. Otherwise, `begin` discards the open run of the directory and begins a new run.

This module imports neither the store nor the web server, because the agent is installed without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Final, cast

from sallyport.areas.directory.entry.entry import Entry, Gone, Group, Person, Problem, Unchanged, Unit
from sallyport.areas.directory.entry.status import Status
from sallyport.base.wire import camel

MAX_ENTRIES: Final = 500
MAX_BATCH_SIZE: Final = 192 << 10
"""Maximum size of the entries of one batch as JSON, in octets. The service parses entries of this size in 2 ms."""
MAX_MEMBERS: Final = 500
"""Maximum number of members in one entry. Further entries of the same group have the other members, and the
flag `continued`."""
_KINDS: Final[Mapping[str, type[Entry]]] = {
    "person": Person, "group": Group, "unit": Unit, "unchanged": Unchanged, "gone": Gone, "problem": Problem,
}  # fmt: skip
_KIND_NAMES: Final = {kind: name for name, kind in _KINDS.items()}

Wire = Mapping[str, object]
"""An entry as a JSON object: `kind`, and its fields in camelCase."""


def batches(entries: Iterable[Entry]) -> Iterator[list[Wire]]:
    """Split entries into batches that a directory agent can send."""
    batch: list[Wire] = []
    octets = 0
    for entry in entries:
        for wire in to_wire(entry):
            size = len(json.dumps(wire))
            if batch and (len(batch) == MAX_ENTRIES or octets + size > MAX_BATCH_SIZE):
                yield batch
                batch, octets = [], 0
            batch.append(wire)
            octets += size
    if batch:
        yield batch


def to_wire(entry: Entry) -> Iterator[Wire]:
    """Yield the JSON objects of an entry. A large group is split into several JSON objects."""
    if not isinstance(entry, Group):
        yield _object(entry)
        return
    for at in range(0, max(1, len(entry.members)), MAX_MEMBERS):
        yield {**_object(replace(entry, members=entry.members[at : at + MAX_MEMBERS])), "continued": at > 0}


def from_wire(wire: Wire) -> tuple[Entry, bool]:
    """Return (entry, continued) for a JSON object. continued: whether the entry has further members of the group in the
    object before it."""
    kind = _KINDS[str(wire["kind"])]
    named = ((name, camel(name)) for name in kind.__dataclass_fields__)
    given = {name: wire[ours] for name, ours in named if ours in wire}
    for name in ("aliases", "member_of", "members", "alias_attributes"):
        if given.get(name) is not None:
            given[name] = tuple(cast(list[str], given[name]))
    if given.get("status") is not None:
        given["status"] = Status(str(given["status"]))
    if kind is Person:
        attributes = cast(Mapping[str, list[str]], given["attributes"])
        given["attributes"] = {name: tuple(values) for name, values in attributes.items()}
    return kind(**given), bool(wire.get("continued"))  # type: ignore[arg-type]


def _object(entry: Entry) -> dict[str, object]:
    stated = {each.name: getattr(entry, each.name) for each in fields(entry)}
    optional = {each.name for each in fields(entry) if each.default is None}
    kept = {name: value for name, value in stated.items() if value is not None or name not in optional}
    return {"kind": _KIND_NAMES[type(entry)], **{camel(name): value for name, value in kept.items()}}

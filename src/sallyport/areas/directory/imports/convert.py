"""Convert a file of entries to a prepared file: `python -I -m ... ldif|spool SOURCE TARGET MAPPED CPU_S OCTETS`.

The parsing of 100,000 entries keeps the interpreter busy for seconds. Logins would have to wait for it. So a child
process (`child`) reads SOURCE, and writes TARGET, the prepared file (`lines`). TARGET appears only after all of SOURCE
was read without an error. So if SOURCE has an error, nothing is imported.

The child prints one JSON object: `{"total", "skipped"}`, or `{"error"}` with a message for an admin. MAPPED: the
attributes that mappings use, separated by commas. CPU_S, OCTETS: limits of CPU time (in seconds) and of memory.
"""

import json
import os
import resource
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from sallyport.areas.directory.entry.descriptions import incomplete
from sallyport.areas.directory.entry.dn import parsed, written
from sallyport.areas.directory.entry.entry import (
    MEMBERSHIPS,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    understood,
    with_primary_group,
)
from sallyport.areas.directory.entry.ldif import (
    Deletion,
    EntryContent,
    LdifParser,
    LdifStep,
    Modification,
    Record,
    Renaming,
)
from sallyport.areas.directory.entry.wire import from_wire
from sallyport.areas.directory.imports.lines import (
    PreparedChange,
    PreparedEntry,
    encoded,
    gathered,
    prepared,
    prepared_change,
)
from sallyport.base.clock import now_us
from sallyport.base.errors import Invalid

PIECE: Final = 1 << 18
NICENESS: Final = 10


class Converter:
    """Writes the lines of a prepared file to `target`. later: a temporary file. It keeps the people whose primary group
    has not been read yet."""

    def __init__(self, target: BinaryIO, later: BinaryIO, mapped: Collection[str]) -> None:
        self._target = target
        self._mapped = mapped
        self._later = later
        self._groups: dict[str, str] = {}
        self.total = 0
        self.skipped = 0

    def ldif(self, source: BinaryIO, now: int) -> None:
        """Write the lines of all records of an LDIF file. Raises LdifError."""
        parser = LdifParser()
        while piece := source.read(PIECE):
            for record in parser.feed(piece):
                self._record(record, now)
        for record in parser.close():
            self._record(record, now)
        self._finish()

    def spool(self, source: BinaryIO) -> None:
        """Write the lines of all entries in a file that was written while a directory was read."""
        group: Group | None = None
        members: list[str] = []
        for line in source:
            entry, continued = from_wire(json.loads(line))
            if continued and isinstance(entry, Group) and group is not None:
                members += entry.members
                continue
            self._whole_group(group, members)
            group = entry if isinstance(entry, Group) else None
            if group is None:
                self._entry(entry, "")
            else:
                members = [*group.members]
        self._whole_group(group, members)
        self._finish()

    def _whole_group(self, group: Group | None, members: list[str]) -> None:
        """Write the lines of a group. members: all members of the group, collected from the several entries that the
        source file may have for the group."""
        if group is not None:
            self._entry(replace(group, members=tuple(members)), "")

    def _record(self, record: Record, now: int) -> None:
        place = f"line {record.line}"
        try:
            match record:
                case EntryContent():
                    entry = understood(record.raw, now=now, mapped=self._mapped)
                    if entry is None:
                        self.total += 1
                        self.skipped += 1
                    elif isinstance(entry, Problem):
                        self._write(prepared(replace(entry, dn=f"{place}: {entry.dn}")))
                    else:
                        self._entry(entry, place)
                case Deletion():
                    self._change(prepared(Gone(dn=record.dn)))
                case Modification():
                    self._change(_modified(record))
                case Renaming():
                    self._change(_renamed(record))
        except Invalid as error:
            self._fail(f"{place}: {record.raw.dn if isinstance(record, EntryContent) else record.dn}", error)

    def _entry(self, entry: Entry, place: str) -> None:
        if isinstance(entry, Group) and entry.key:
            self._groups.setdefault(entry.key, entry.dn)
        if isinstance(entry, Person) and entry.primary_group:
            known = with_primary_group(entry, self._groups)
            if known.primary_group:
                self._later.write(gathered([entry]))
                return
            entry = known
        try:
            self._write(prepared(entry))
        except Invalid as error:
            self._fail(f"{place}: {entry.dn}" if place else getattr(entry, "dn", ""), error, entry)

    def _change(self, change: PreparedEntry) -> None:
        """Write the line of a change to a stored entry. The people in `later` are written first, so that the lines keep
        the order of the source."""
        self._finish()
        self._write(change)

    def _finish(self) -> None:
        """Write the lines of the people in `later`. All groups before this point are known now."""
        if not self._later.tell():
            return
        self._later.seek(0)
        for line in self._later:
            entry, _ = from_wire(json.loads(line))
            if isinstance(entry, Person):
                self._entry(replace(with_primary_group(entry, self._groups), primary_group=""), "")
        self._later.seek(0)
        self._later.truncate()

    def _fail(self, where: str, error: Invalid, entry: Entry | None = None) -> None:
        """Write a line for an entry that cannot be used. The directory still has the entry, so this line prevents the
        removal of the stored entry."""
        self._write(prepared(Problem(where, str(error), getattr(entry, "external_id", ""))))

    def _write(self, entry: PreparedEntry) -> None:
        self._target.write(encoded(entry))
        self.total += 1


def _modified(record: Modification) -> PreparedChange:
    """Return the change of an entry. Raises Invalid if the name is not valid, or if the change has only a part
    of the values of a membership."""
    if parts := sorted(MEMBERSHIPS & incomplete(dict.fromkeys(name for _, name, _ in record.steps))):
        raise Invalid(f"the change has only a part of the values of {parts[0]} (range)")
    return prepared_change(record.dn, record.dn, record.steps)


def _renamed(record: Renaming) -> PreparedChange:
    """Return the renaming of an entry. A new name also changes attributes of the entry, and the result contains these
    changes. Raises Invalid if a name is not valid."""
    superior = record.superior
    own, *parents = parsed(record.dn) or [[]]
    if superior is None:
        superior = written(parents)
    steps = [(LdifStep.ADD, kind, [value.encode()]) for pairs in parsed(record.new_rdn) for kind, value in pairs]
    if record.deletes_old:
        steps = [(LdifStep.DELETE, kind, [value.encode()]) for kind, value in own] + steps
    return prepared_change(record.dn, f"{record.new_rdn},{superior}" if superior else record.new_rdn, steps)


def parts_of(target: Path) -> tuple[Path, Path]:
    """Return the paths of the temporary files that `convert` writes until TARGET is complete."""
    return target.with_name(target.name + ".part"), target.with_name(target.name + ".later")


def convert(kind: str, source: Path, target: Path, mapped: Collection[str] = ()) -> dict[str, int | str]:
    """Read SOURCE and write TARGET. Return the object that the child prints. Raises OSError, MemoryError."""
    part, later = parts_of(target)
    try:
        with source.open("rb") as lines, part.open("wb") as written, later.open("w+b") as kept:
            converter = Converter(written, kept, mapped)
            if kind == "ldif":
                converter.ldif(lines, now_us())
            else:
                converter.spool(lines)
            written.flush()
            os.fsync(written.fileno())
        part.replace(target)
    except Invalid as error:
        return {"error": str(error)}
    finally:
        part.unlink(missing_ok=True)
        later.unlink(missing_ok=True)
    return {"total": converter.total, "skipped": converter.skipped}


def main() -> None:
    """Run the child process."""
    kind, source, target, mapped, cpu_s, octets = sys.argv[1:]
    os.umask(0o077)
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (int(octets), int(octets)))
    try:
        result = convert(kind, Path(source), Path(target), frozenset(mapped.split(",")))
    except OSError as error:
        result = {"error": f"the file cannot be prepared: {error.strerror}"}
    except MemoryError:
        result = {"error": f"the file needs more than {int(octets) >> 20} MiB of memory: import it in smaller parts"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()

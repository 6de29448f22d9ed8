"""Groups with half a million members: no step of an import works on all members at once."""

import json
from contextlib import closing
from pathlib import Path

from sallyport.areas.directory.imports.finish import WRITTEN_AT_ONCE, _read, _write
from sallyport.areas.directory.imports.job import ImportRun
from sallyport.areas.directory.imports.lines import PreparedChange, key_of
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.areas.directory.stored.changes import group_after
from sallyport.areas.directory.stored.memberships import SPREAD, _spread, difference
from sallyport.areas.directory.stored.rows import StoredEntry
from sallyport.store.connections import open_connection
from sallyport.store.migrations import migrate
from tests.plans import statements

KEYS = [number.to_bytes(16) for number in range(100_000)]


def test_the_difference_of_members() -> None:
    """The keys that are only on one side are returned, in ascending order and without repetitions."""
    after, before = KEYS[500:][::-1] + KEYS[500:600], KEYS[:-300]
    assert difference(after, before) == (KEYS[-300:], KEYS[:500])
    assert difference([], []) == ([], [])
    names = [key_of(f"uid:{number}") for number in range(50)]
    assert difference(names, ()) == (sorted(names), [])


def test_keys_are_spread_over_small_sets() -> None:
    """No set has many of the keys, also if the keys begin with the same octets."""
    assert max(map(len, _spread(KEYS))) < 3 * len(KEYS) / SPREAD


def test_people_of_groups_are_written_in_parts(tmp_path: Path) -> None:
    """A line of the file has few people. The file is read as it was written. A file of an earlier release has one
    line."""
    path = tmp_path / "before"
    found = {"staff": {number: [f"user {number}"] for number in range(2 * WRITTEN_AT_ONCE + 1)}, "few": {7: ["ann"]}}
    wanted = {group: {str(number): names for number, names in people.items()} for group, people in found.items()}
    _write(path, found)
    lines = path.read_text().splitlines()
    assert [len(people) for line in lines for people in json.loads(line).values()] == [
        WRITTEN_AT_ONCE, WRITTEN_AT_ONCE, 1, 1,
    ]  # fmt: skip
    assert _read(path) == wanted
    path.write_text(json.dumps(wanted))
    assert _read(path) == wanted
    assert _read(tmp_path / "missing") == {}


def test_a_change_without_members_reads_no_members(tmp_path: Path) -> None:
    """A change of another attribute of a group reads none of its members. A change of its members reads all."""
    run = ImportRun(1, 1, 1, cloud=False, marks=False, mapping=FieldMapping({}), mapped=frozenset(), started_at=0)
    dn = "cn=staff,dc=example,dc=com"
    known = StoredEntry(1, "", dn, key_of(dn), "staff", b"", 0)

    def reads(attribute: str) -> list[str]:
        change = PreparedChange(
            dn, known.dn_key, dn, known.dn_key, [("replace", attribute, ["uid=ann,dc=example,dc=com"])]
        )
        found = statements(path, lambda tx: group_after(tx, run, known, change))
        return [each for each in found if "directory_members" in each]

    path = tmp_path / "s.db"
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
    assert reads("description") == []
    assert len(reads("member")) == 2

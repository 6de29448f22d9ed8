"""The lines of prepared files."""

import re
from io import BytesIO

from sallyport.areas.directory.entry.entry import Gone, Group, Person, Problem, Unchanged, Unit
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.imports.lines import (
    MEMBERS,
    PreparedEntry,
    PreparedProblem,
    encoded,
    identifiers_of,
    key_of,
    prepared,
    prepared_change,
    read_entry,
)

LONG = "\u00e4" * 256
ANN = "cn=ann,dc=example,dc=com"
STAFF = "cn=staff,dc=example,dc=com"


def read(octets: bytes) -> list[tuple[PreparedEntry, int]]:
    """Return all entries of a file, with their numbers of lines."""
    file, found = BytesIO(octets), list[tuple[PreparedEntry, int]]()
    while (entry := read_entry(file)) is not None:
        found.append(entry)
    return found


def test_entries_are_read_as_they_were_written() -> None:
    """A file returns the entries that were written to it, and the number of their lines."""
    whole = Person("1", ANN, "ann", ("a",), Status.ACTIVE, (STAFF,), {"mail": ("ann@example.com",)})
    part = Person("1", ANN, "", (), None, (), {"mail": ()}, alias_attributes=("uid",))
    crowd = Group("2", STAFF, "staff", tuple(f"uid:{number}" for number in range(2 * MEMBERS + 1)))
    rest = [Group("3", "id:9", "", ()), Unit("4", "ou=a,dc=b", "a"), Unchanged("5"), Gone(dn=ANN), Problem("x", "y")]
    written = [prepared(entry) for entry in (whole, part, crowd, *rest)]
    written.append(prepared_change(ANN, STAFF, [("add", "cn", [b"b", b"\xff"])]))
    found = read(b"".join(map(encoded, written)))
    assert [type(entry) for entry, _ in found] == [type(entry) for entry in written]
    assert [encoded(entry) for entry, _ in found] == [encoded(entry) for entry in written]
    assert [lines for _, lines in found] == [1, 1, 4, 1, 1, 1, 1, 1, 1]


def test_the_lines_of_a_group() -> None:
    """Keys are in hexadecimal, and the members follow in lines of their own."""
    first, second = encoded(prepared(Group("g", "id:1", "staff", ("id:2",)))).decode().splitlines()
    assert re.fullmatch(r'\["g","g","id:1","[0-9a-f]{32}","staff","[0-9a-f]{32}",1,""\]', first)
    assert second == f'["m",["{key_of("id:2").hex()}"]]'


def test_a_file_of_an_older_version_is_read() -> None:
    """A problem without a status is read, as versions before the status wrote it."""
    assert read(b'["x","line 1","no name","id"]\n') == [(PreparedProblem("line 1", "no name", "id"), 1)]


def test_identifiers_are_case_folded_and_bounded() -> None:
    """An index of PostgreSQL refuses long values, and a directory may send many. Only people of cloud directories have
    identifiers, and a device has no principal name."""
    many = {"mail": [LONG, *(f"Ann{number}@corp.example" for number in range(30))], "employeeid": ["E-17"]}
    found = identifiers_of("id:8A7B", "Ann@corp.example", many)
    assert found == [
        "id:8a7b", "upn:ann@corp.example", *(f"mail:ann{number}@corp.example" for number in range(8)), "serial:e-17",
    ]  # fmt: skip
    device = {"entra-device-id": ["3F25"], "displayname": ["PC1"], "mail": ["pc1@corp.example"]}
    assert identifiers_of("id:5b1e", "host/3F25", device) == ["id:5b1e", "id:3f25", "dns:pc1"]
    assert identifiers_of(ANN, "ann", many) == []

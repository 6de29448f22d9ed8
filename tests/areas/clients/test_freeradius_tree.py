"""Tests of references, templates and included files, and of the limits that protect against hostile files."""

import os
from pathlib import Path

import pytest

from sallyport.areas.clients.freeradius import read
from sallyport.areas.clients.freeradius_tree import MAX_FILES, MAX_INCLUDES, MAX_OCTETS, Parser
from sallyport.base.errors import ClientsFileError
from sallyport.base.secret import Secret

from .conf import GOOD, client, names, only, write


@pytest.mark.parametrize(
    ("above", "inside", "below", "value"),
    [
        ("x = top", "shortname = ${x}", "", "top"),
        ("", "shortname = ${x}", "x = below", "below"),
        ("x = top", "x = here\nshortname = ${x}", "", "here"),
        ("x = top", "shortname = ${x}\nx = here", "", "top"),
        ("x = top", "x = here\nshortname = ${.x}", "", "here"),
        ("x = top", "x = here\nshortname = ${..x}", "", "top"),
        ("x = top", "shortname = ${....x}", "", "top"),
        ("s { x = in }", "shortname = ${s.x}", "", "in"),
        ("s a { x = in }\ns b { x = other }", "shortname = ${s[b].x}", "", "other"),
        ("x = 1\ny = ${x}2", 'shortname = "${y}${x}$$3"', "", "121$$3"),
        ("x = '${y}'\ny = 1", "shortname = ${x}", "", "${y}"),
        ("", "shortname = $ENV{SITE}-1", "", "north-1"),
        ("", "shortname = ${client[nas].ipaddr}", "", "192.0.2.1"),
        ("x = first\nx = second", "shortname = ${x}", "", "first"),
    ],
)
def test_references_are_resolved(tmp_path: Path, above: str, inside: str, below: str, value: str) -> None:
    """A reference is resolved in the places that FreeRADIUS searches: in the section, at the top level, by a path, and
    in nested sections."""
    assert only(tmp_path, f"{above}\n{client(more=inside)}{below}\n", SITE="north").name == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"x = ${{y}}\ny = 1\n{client(more='shortname = ${x}')}", "refers to a later line"),
        (client(more="shortname = ${.x}"), "names no item"),
        (client(more="shortname = ${}"), "names no item"),
        (client(more="shortname = ${a[b].c.d}"), "names no item"),
        (client(more="shortname = ${.}"), "names no item"),
    ],
)
def test_an_unresolved_reference_excludes_its_client(tmp_path: Path, text: str, reason: str) -> None:
    """If FreeRADIUS cannot resolve a reference of a client, the client is reported and not imported."""
    (bad,) = read(write(tmp_path, text)).unusable
    assert reason in bad.reason


def test_an_environment_variable_keeps_its_octets(tmp_path: Path) -> None:
    """A secret keeps the octets of a variable that is not UTF-8."""
    secret = only(tmp_path, client(secret='"$ENV{S}"'), S=os.fsdecode(b"\xff\xe9 ok")).secret
    assert secret.reveal() == b"\xff\xe9 ok"


def test_a_client_inherits_from_its_template(tmp_path: Path) -> None:
    """A client inherits the items of its template, except those that it sets itself."""
    text = f"templates {{\nbranch {{\nsecret = {GOOD}\nnas_type = cisco\n}}\n}}\n"
    entry = only(tmp_path, f"{text}client a {{\n$TEMPLATE branch\nipaddr = ::1\nnas_type = mikrotik\n}}\n")
    assert (entry.secret, entry.product) == (Secret(GOOD.encode()), "MikroTik RouterOS")


def test_an_included_file_is_read_in_place(tmp_path: Path) -> None:
    """The path of an included file is relative to the file that includes it."""
    write(tmp_path, f"{client('b')}$include 'd e'\n", "sub/b.conf")
    write(tmp_path, client("c"), "sub/d e")
    write(tmp_path, "shortname = e\n", "part")
    text = (
        f"{client('a')}$INCLUDE ${{confdir}}/sub/b.conf # rest\n$-INCLUDE missing\n{client('d', more='$INCLUDE part')}"
    )
    entries = read(write(tmp_path, text))
    assert names(entries) == ["a", "b", "c", "e"]
    assert entries[2].where == f"{tmp_path / 'sub' / 'd e'}:1"


def test_an_included_directory_is_read(tmp_path: Path) -> None:
    """FreeRADIUS reads only files whose names consist of letters, digits, `.`, `-` and `_` and do not begin with a dot.

    The import reads the same files.
    """
    for name in ("z.conf", "a-b", "c_d.bak", ".hidden", "e~", "#f#", "g h", "i+"):
        write(tmp_path, client(f"'{name}'"), f"clients.d/{name}")
    (tmp_path / "clients.d" / "inner").mkdir()
    (tmp_path / "clients.d" / "nowhere").symlink_to("missing")
    assert names(read(write(tmp_path, "$INCLUDE clients.d/\n"))) == ["a-b", "c_d.bak", "z.conf"]


@pytest.mark.parametrize("text", ["client a {\n$INCLUDE end\n", "$INCLUDE begin\n}\n"], ids=["end", "begin"])
def test_an_included_file_closes_its_own_sections(tmp_path: Path, text: str) -> None:
    """A section that begins in one file and ends in another is refused."""
    write(tmp_path, "}\n", "end")
    write(tmp_path, "client a {\n", "begin")
    with pytest.raises(ClientsFileError, match=r"no open section|not closed"):
        read(write(tmp_path, text))


def test_limits_on_files(tmp_path: Path) -> None:
    """The depth, the number and the size of included files are limited. Only regular files are opened."""
    for number in range(MAX_INCLUDES + 2):
        write(tmp_path, f"$INCLUDE {number + 1}\n", str(number))
    with pytest.raises(ClientsFileError, match=f"more than {MAX_INCLUDES} files deep"):
        read(tmp_path / "0")
    write(tmp_path, "", "empty")
    with pytest.raises(ClientsFileError, match=f"more than {MAX_FILES} files"):
        read(write(tmp_path, "$INCLUDE empty\n" * MAX_FILES))
    with pytest.raises(ClientsFileError, match=f"more than {MAX_OCTETS} octets"):
        read(write(tmp_path, b"#" * (MAX_OCTETS + 1)))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ClientsFileError, match="is not a file"):
        read(tmp_path / "pipe")


def test_the_number_of_statements_is_limited(tmp_path: Path) -> None:
    """The number of statements is limited, so that many tiny statements cannot fill the memory."""
    path = write(tmp_path, "a{}\n" * 51)
    with pytest.raises(ClientsFileError, match="more than 100 statements"):
        Parser({}, max_statements=100).parse(path)

"""The folder of `sallyport apply`: files, references to secrets, and what an export writes."""

from pathlib import Path

import pytest

from sallyport.areas.configuration.files import FileKind, read_folder
from sallyport.areas.configuration.references import MAX_OCTETS, References
from sallyport.areas.configuration.writing import text_of, write_file
from sallyport.base.errors import StartError

CLIENT = FileKind("client", "name", "domains", ["domains", "name", "address", "secret", "note"], frozenset({"secret"}))
BY_HAND = """# the clients of the branch
[[client]]
note = '''
[[client]]
'''
name = "wifi"  # the controller
secret = "env:SALLYPORT_SECRET_WIFI"

[[client]]
address = "192.0.2.1"
name = "vpn"
secret = "file:secrets/vpn"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file, a secret, and a secret beside it."""
    folder = tmp_path / "folder"
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets/vpn").write_bytes(b"a secret of the vpn\n")
    (tmp_path / "outside").write_text("a s3cret outside")
    (folder / "client.toml").write_text(BY_HAND)
    return folder


def test_references_are_resolved(folder: Path) -> None:
    """A secret comes from a file without its line end, or from the environment. Each object has its line."""
    found = read_folder(folder, [CLIENT], (1, 1), References(folder, {"SALLYPORT_SECRET_WIFI": "w"}))
    wifi, vpn = found[1, 1]
    assert wifi["source"] == "client.toml:2" and vpn["source"] == "client.toml:9"
    assert vpn["fields"]["secret"] == {"hex": b"a secret of the vpn".hex()}  # type: ignore[index, call-overload]
    assert wifi["fields"]["secret"] == {"hex": b"w".hex()}  # type: ignore[index, call-overload]


def test_credentials_of_systemd_are_read(folder: Path, tmp_path: Path) -> None:
    """A file that the folder does not have may be one of $CREDENTIALS_DIRECTORY."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given/key").write_text("a credential")
    references = References(folder, {"CREDENTIALS_DIRECTORY": str(tmp_path / "given")})
    assert references.resolved("file:key", {"secret"}, "x", "secret") == {"hex": b"a credential".hex()}


@pytest.mark.parametrize(
    "reference",
    [
        "file:../outside",
        "file:../../etc/passwd",
        "file:/etc/passwd",
        "file:link",
        "file:linked/outside",
        "file:secrets",
        "file:",
        "file:none",
        "env:PATH",
        "env:SALLYPORT_DATABASE",
        "env:SALLYPORT_SECRET_NONE",
        "in clear",
        "env:",
        "http://example.org/",
        {"hex": "00"},
        7,
    ],
    ids=str,
)
def test_hostile_references_are_refused(folder: Path, tmp_path: Path, reference: object) -> None:
    """A reference does not leave the folder, not by a link either, and reads no other variable. The error has no
    secret."""
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "linked").symlink_to(tmp_path)
    environ = {"PATH": "a s3cret path", "SALLYPORT_DATABASE": "postgres://a s3cret"}
    with pytest.raises(StartError) as found:
        References(folder, environ).resolved({"secret": reference}, {"secret"}, "client.toml:3")
    assert str(found.value).startswith("client.toml:3: secret: ")
    assert "s3cret" not in str(found.value) and "in clear" not in str(found.value)


def test_a_huge_file_is_no_secret(folder: Path) -> None:
    """A file has at most 64 KiB."""
    (folder / "huge").write_bytes(b"x" * (MAX_OCTETS + 1))
    with pytest.raises(StartError, match="more than"):
        References(folder, {}).resolved({"secret": "file:huge"}, {"secret"}, "x")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("client.toml", '[[client]]\nname = "a"\n\nnames = "x"', "client.toml:4: names: no such field"),
        ("client.toml", 'version = 1\n[[client]]\nname = "a"', "client.toml:1: version: only tables"),
        ("client.toml", '[client]\nname = "a"', "only tables [[client]]"),
        ("client.toml", "[[client]]\nname = \n", "line 2"),
        ("clients.toml", "", "no kind of objects has this name; existing: client"),
        ("0-1.client.toml", "", "no kind of objects has this name"),
        ("client.toml", "a = " + "[" * 9000, "nested too deeply"),
        ("client.toml", "a = " + "9" * 9000, "too many digits"),
    ],
    ids=["field", "top", "table", "syntax", "kind", "tenant", "depth", "digits"],
)
def test_wrong_files_name_their_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    """An error has the file and, as far as known, the line."""
    (tmp_path / name).write_text(text)
    with pytest.raises(StartError) as found:
        read_folder(tmp_path, [CLIENT], (1, 1), References(tmp_path, {}))
    assert message in str(found.value)


def test_files_of_other_tenants_have_numbers(tmp_path: Path) -> None:
    """A file with a number belongs to that tenant. Without the only tenant, a file needs a number."""
    (tmp_path / "2-7.client.toml").write_text('[[client]]\nname = "a"')
    references = References(tmp_path, {})
    assert list(read_folder(tmp_path, [CLIENT], None, references)) == [(2, 7)]
    (tmp_path / "client.toml").write_text('[[client]]\nname = "a"')
    with pytest.raises(StartError, match="give --org and --tenant"):
        read_folder(tmp_path, [CLIENT], None, references)


def test_an_export_keeps_comments_order_and_references(tmp_path: Path) -> None:
    """A file of a person keeps its comments, its order and its references to secrets. Only what differs changes."""
    objects = [
        {"name": "vpn", "address": "192.0.2.2", "secret": "keep"},
        {"name": "wifi", "note": "\n[[client]]\n", "secret": "keep"},
        {"name": "new", "address": "192.0.2.3", "secret": "keep", "domains": ["corp"]},
    ]
    text = text_of(CLIENT, objects, BY_HAND.replace("'''\n[[", "'''\n\n[["), References(tmp_path, {}))
    assert text.startswith("# the clients of the branch\n[[client]]\nnote")
    assert '"wifi"  # the controller\nsecret = "env:SALLYPORT_SECRET_WIFI"' in text
    assert 'address = "192.0.2.2"\nname = "vpn"\nsecret = "file:secrets/vpn"' in text
    assert text.endswith('name = "new"\naddress = "192.0.2.3"\nsecret = "keep"\ndomains = ["corp"]\n')
    assert text_of(CLIENT, objects, text, References(tmp_path, {})) == text


def test_an_unchanged_file_is_not_written(tmp_path: Path) -> None:
    """The file of a kind is written once. A kind without objects gets no file."""
    path = tmp_path / "client.toml"
    objects = [{"name": "vpn", "address": "192.0.2.2", "secret": "keep"}]
    assert [write_file(path, CLIENT, objects, References(tmp_path, {})) for _ in range(2)] == [True, False]
    assert not write_file(tmp_path / "role.toml", CLIENT, [], References(tmp_path, {}))


def test_a_certificate_may_be_in_a_file(tmp_path: Path) -> None:
    """A text such as a certificate is in its file, or a reference to another file, which an export keeps if it has the
    same text. A text of several lines is written as such."""
    kind = FileKind("authority", "name", "", ["name", "certificates"], frozenset(), frozenset({"certificates"}))
    (tmp_path / "ca.pem").write_text("a\nb")
    (tmp_path / "authority.toml").write_text('[[authority]]\nname = "a"\ncertificates = "file:ca.pem"\n')
    references = References(tmp_path, {})
    ((row,),) = read_folder(tmp_path, [kind], (1, 1), references).values()
    assert row["fields"] == {"name": "a", "certificates": "a\nb"}
    path = tmp_path / "authority.toml"
    assert not write_file(path, kind, [{"name": "a", "certificates": "a\nb\n"}], references)
    assert write_file(path, kind, [{"name": "a", "certificates": "a\nc\n"}], references)
    assert path.read_text() == '[[authority]]\nname = "a"\ncertificates = """a\nc\n"""\n'

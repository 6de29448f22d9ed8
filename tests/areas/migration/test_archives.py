"""Tests of archives of a folder of FreeRADIUS, of which some are hostile."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sallyport.areas.migration import archives, freeradius
from sallyport.areas.migration.archives import unpack
from sallyport.areas.migration.child import LIMITS, translate_open
from sallyport.areas.migration.translation import Options
from sallyport.areas.migration.uploads import MAX_OPEN, NamelessFiles
from sallyport.base.errors import Invalid, TooMany

CLIENTS = b"client core { ipaddr = 192.0.2.1\n secret = core-secret-1 }\n"
FILES = {
    "3.0/clients.conf": b"$INCLUDE ${confdir}/more.conf\n$INCLUDE clients.d/\n",
    "3.0/more.conf": CLIENTS,
    "3.0/clients.d/branch": b"client branch { ipaddr = 192.0.2.2\n secret = branch-secret-2 }\n",
    "3.0/mods-config/files/authorize": b'alice Cleartext-Password := "pass word"\n',
    "3.0/sites-available/default": b"authorize {\n if (User-Name) { reject }\n}\n",
}
LINKS = {"3.0/sites-enabled/default": "../sites-available/default", "3.0/users": "mods-config/files/authorize"}


def tar(files: Mapping[str, bytes], links: Mapping[str, str] = {}, *, hard: bool = False, mode: str = "w:gz") -> bytes:
    """Return a tar. hard: whether the links are hard links."""
    octets = io.BytesIO()
    with tarfile.open(fileobj=octets, mode=mode) as packed:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.LNKTYPE if hard else tarfile.SYMTYPE, target
            packed.addfile(member)
    return octets.getvalue()


def zipped(files: Mapping[str, bytes], links: Mapping[str, str] = {}) -> bytes:
    """Return a zip."""
    octets = io.BytesIO()
    with zipfile.ZipFile(octets, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
        for name, target in links.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = 0o120777 << 16
            packed.writestr(member, target)
    return octets.getvalue()


def device() -> bytes:
    """Return a tar with a device."""
    octets = io.BytesIO()
    with tarfile.open(fileobj=octets, mode="w") as packed:
        member = tarfile.TarInfo("null")
        member.type = tarfile.CHRTYPE
        packed.addfile(member)
    return octets.getvalue()


def encrypted() -> bytes:
    """Return a zip whose entry is marked as encrypted."""
    octets = bytearray(zipped({"clients.conf": CLIENTS}))
    octets[6] |= 1
    octets[octets.index(b"PK\x01\x02") + 8] |= 1
    return bytes(octets)


def unpacked(tmp_path: Path, octets: bytes) -> dict[str, bytes]:
    """Unpack an archive, and return its files by name."""
    (tmp_path / "archive").write_bytes(octets)
    folder = tmp_path / "folder"
    folder.mkdir()
    unpack(tmp_path / "archive", folder)
    assert not [each for each in folder.rglob("*") if each.is_symlink()]
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "octets",
    [tar(FILES, LINKS), tar(FILES, LINKS, mode="w:xz"), tar(FILES, LINKS, mode="w"), zipped(FILES, LINKS)],
    ids=["tar.gz", "tar.xz", "tar", "zip"],
)
def test_an_archive_has_the_files_of_its_links(tmp_path: Path, octets: bytes) -> None:
    """A link within the archive becomes a copy of its file."""
    found = unpacked(tmp_path, octets)
    assert found["3.0/users"] == FILES["3.0/mods-config/files/authorize"]
    assert found["3.0/sites-enabled/default"] == FILES["3.0/sites-available/default"]
    assert found.items() >= FILES.items()


def test_links_to_other_places_are_left_out(tmp_path: Path) -> None:
    """No link leads out of the archive, also not by way of another link, and none in circles."""
    links = {
        "passwd": "/etc/passwd",
        "up": "../../../../../../etc/passwd",
        "here": ".",
        "out": "here/../../../etc/passwd",
        "a": "b",
        "b": "a",
        "certs/ca.pem": "../../etc/ssl/ca.pem",
    }
    assert unpacked(tmp_path, tar({"x": b"1"}, links)) == {"x": b"1"}


def test_a_name_in_another_encoding(tmp_path: Path) -> None:
    """A name that is not UTF-8 can be shown."""
    (name,) = unpacked(tmp_path, tar({"sites-enabled/m\udcfcller": b"1"}))
    assert name == "sites-enabled/m\ufffdller"


def test_a_hard_link_is_relative_to_the_archive(tmp_path: Path) -> None:
    assert unpacked(tmp_path, tar({"a/x": b"1"}, {"b/y": "a/x"}, hard=True)) == {"a/x": b"1", "b/y": b"1"}


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (lambda: tar({"../evil": b""}), "outside of its folder"),
        (lambda: zipped({"a/../../evil": b""}), "outside of its folder"),
        (lambda: tar({"a": b"1", "a/b": b"2"}), "a file where it has a folder"),
        (lambda: zipped({"zeros": bytes(archives.MAX_OCTETS + 1)}), "more than 32 MiB"),
        (lambda: tar({"zeros": bytes(archives.MAX_OCTETS + 1)}), "more than 32 MiB"),
        (lambda: tar({"a": bytes(archives.MAX_OCTETS // 2)}, {"b": "a", "c": "a"}), "more than 32 MiB"),
        (lambda: tar({f"f{n}": b"" for n in range(archives.MAX_ENTRIES + 1)}), "more than 5000 entries"),
        (lambda: tar({"/".join("d" * 20): b""}), "more than 16 folders"),
        (lambda: tar(FILES)[:-200], "damaged"),
        (lambda: zipped(FILES)[:-30], "no archive"),
        (lambda: b"", "no archive"),
        (lambda: b"\x1f\x8b" + bytes(100), "no archive"),
        (device, "no file, folder or link"),
        (encrypted, "encrypted"),
    ],
    ids=[
        "path", "zip-path", "file-and-folder", "zip-bomb", "tar-bomb", "links-bomb", "entries", "depth",
        "truncated", "zip-truncated", "empty", "octets", "device", "encrypted",
    ],
)  # fmt: skip
def test_hostile_archives(tmp_path: Path, made: Callable[[], bytes], part: str) -> None:
    """An archive that is wrong, or exceeds a limit, is refused with the reason. Nothing is written beside its
    folder."""
    with pytest.raises(Invalid, match=part):
        unpacked(tmp_path, made())
    assert {each.name for each in tmp_path.iterdir()} <= {"archive", "folder"}


def test_an_archive_is_read_as_its_folder(tmp_path: Path) -> None:
    """The plan is that of the folder. Places are relative to it, so that the same archive gives the same plan."""
    (tmp_path / "archive").write_bytes(tar(FILES, LINKS))
    given = tmp_path / "given"
    given.mkdir()
    unpack(tmp_path / "archive", given)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = freeradius.translate_archive(tmp_path / "archive", tmp_path / "one", Options("corp"))
    two = freeradius.translate_archive(tmp_path / "archive", tmp_path / "two", Options("corp"))
    assert one.as_json() == two.as_json()
    assert [each.name for each in one.items] == [
        each.name for each in freeradius.translate(given / "3.0", Options("corp")).items
    ]
    assert {each.source for each in one.items if each.kind == "client"} == {"more.conf:1", "clients.d/branch:1"}
    assert str(tmp_path) not in str(one.as_json())


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc/", "../../../../etc/passwd"])
def test_no_file_of_the_host_is_included(tmp_path: Path, target: str) -> None:
    """clients.conf of an archive includes only files of the archive."""
    (tmp_path / "archive").write_bytes(tar({"clients.conf": f"$INCLUDE {target}\n".encode()}))
    (tmp_path / "work").mkdir()
    with pytest.raises(Invalid, match=r"clients.conf:1: .*outside of the folder"):
        freeradius.translate_archive(tmp_path / "archive", tmp_path / "work", Options("corp"))


def test_the_files_of_an_archive_are_deleted(tmp_path: Path) -> None:
    """They are deleted after reading, also if the reader fails. Those that a killed process has left are deleted by the
    next start; those of a running process stay."""
    files = NamelessFiles(tmp_path)
    for octets in (tar(FILES), tar({"x": b""}), b"no archive"):
        with (tmp_path / "archive").open("w+b") as file, files.unpacked() as folder:
            file.write(octets)
            file.flush()
            if octets == tar(FILES):
                assert translate_open("freeradius", file, "x.tgz", Options("corp"), LIMITS, folder).items
            else:
                with pytest.raises(Invalid, match=r"^x\.tgz: "):
                    translate_open("freeradius", file, "x.tgz", Options("corp"), LIMITS, folder)
    assert [each.name for each in tmp_path.iterdir()] == ["archive"]
    others = {".unpacked-1-x", "import-2026", "import-999999999-x", ".unpacked-999999999", ".unpacked-old-x"}
    for name in (".unpacked-999999999-x", *others):
        (tmp_path / name).mkdir()
    files.delete_unpacked()
    assert {each.name for each in tmp_path.iterdir()} == {"archive", *others}


def refusal(tmp_path: Path, files: Mapping[str, bytes], links: Mapping[str, str] = {}) -> str:
    """Return why an uploaded archive is refused."""
    with (tmp_path / "archive").open("w+b") as file, NamelessFiles(tmp_path).unpacked() as folder:
        file.write(tar(files, links))
        file.flush()
        with pytest.raises(Invalid) as refused:
            translate_open("freeradius", file, "x.tgz", Options("corp"), LIMITS, folder)
    return str(refused.value)


@pytest.mark.parametrize(
    ("files", "links"),
    [
        ({"clients.conf": CLIENTS}, {"a" * 300: "clients.conf"}),
        ({"clients.conf": CLIENTS, "a" * 300: b""}, {}),
        ({"a/clients.conf": b"$INCLUDE ${confdir}\n"}, {}),
        ({"a/clients.conf": b"$INCLUDE ${confdir}/missing\n"}, {}),
        ({"a/clients.conf": b"$INCLUDE ../b\n", "b": b"}\n"}, {}),
        ({"clients.conf": CLIENTS, "users": b"$INCLUDE missing\n"}, {}),
        ({"clients.conf": CLIENTS, "users": b"$INCLUDE a\0b\n"}, {}),
    ],
    ids=["link", "file", "folder", "missing", "beside", "users", "nul"],
)
def test_no_answer_has_the_path_of_the_data_directory(
    tmp_path: Path, files: Mapping[str, bytes], links: Mapping[str, str]
) -> None:
    assert str(tmp_path) not in refusal(tmp_path, files, links)


def test_a_name_has_no_path_of_the_data_directory(tmp_path: Path) -> None:
    """clients.conf can name its folder. The name is the same each time, and so is the plan."""
    text = b"client x { shortname = ${confdir}\n ipaddr = 192.0.2.1\n secret = core-secret-1 }\n"
    with (tmp_path / "archive").open("w+b") as file, NamelessFiles(tmp_path).unpacked() as folder:
        file.write(tar({"clients.conf": text}))
        file.flush()
        found = translate_open("freeradius", file, "x.tgz", Options("corp"), LIMITS, folder)
    assert str(tmp_path) not in str(found)


def test_files_that_include_each_other(tmp_path: Path) -> None:
    """The number of files that are read is limited, not only their depth."""
    files = {f"a{at}": f"$INCLUDE a{at + 1}\n".encode() * 50 for at in range(16)}
    text = refusal(tmp_path, {"clients.conf": CLIENTS, "users": b"$INCLUDE a0\n", **files, "a16": b""})
    assert "more than 1000 files" in text or "more than 16 deep" in text, text


async def test_a_tenant_has_one_file_at_a_time(tmp_path: Path) -> None:
    """Another tenant is not refused. A file that is discarded makes room, also if it is discarded twice."""
    files = NamelessFiles(tmp_path)
    kept = [await files.open(1, 1)]
    with pytest.raises(TooMany, match="of the tenant"):
        await files.open(1, 1)
    kept += [await files.open(1, tenant) for tenant in range(2, MAX_OPEN + 1)]
    with pytest.raises(TooMany, match="other files"):
        await files.open(1, MAX_OPEN + 1)
    await files.discard(kept[0])
    await files.discard(kept[0])
    kept.append(await files.open(1, 1))
    for each in kept:
        await files.discard(each)


def test_an_entry_without_a_name_is_refused(tmp_path: Path) -> None:
    """zipfile cannot say whether such an entry is a folder."""
    octets = zipped({"a": b"1"}).replace(b"a1", b"1", 1)
    at = octets.index(b"PK\x01\x02")
    head = octets[:26] + b"\0\0" + octets[28:at]  # the length of the name is 0
    directory = octets[at : at + 28] + b"\0\0" + octets[at + 30 : at + 46] + octets[at + 47 :]
    end = directory.index(b"PK\x05\x06")
    size, offset = end.to_bytes(4, "little"), len(head).to_bytes(4, "little")
    fixed = directory[: end + 12] + size + offset + directory[end + 20 :]
    with pytest.raises(Invalid, match="an entry without a name"):
        unpacked(tmp_path, head + fixed)


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """A zip whose flags say that a name is UTF-8, although it is not, is damaged."""
    octets = zipped({"\u00e4": b"1"}).replace("\u00e4".encode(), b"\xb4\xff")
    with pytest.raises(Invalid, match="is damaged"):
        unpacked(tmp_path, octets)

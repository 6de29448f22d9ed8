"""Archives of a folder, such as /etc/freeradius/3.0: tar, also compressed, and zip. They may be hostile.

Only regular files are written. The target of a link is looked up among the names of the archive, and its content is
copied, so the result has no links and no place outside of the folder. Names, sizes and numbers are limited, and the
limits count what is written, not what a header says.
"""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final

from sallyport.base.errors import Invalid

MAX_ENTRIES: Final = 5000
MAX_OCTETS: Final = 32 << 20
"""Maximum number of octets of all files, unpacked."""
MAX_DEPTH: Final = 16
MAX_PATH: Final = 400
MAX_LINKS: Final = 16
_DAMAGED: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,  # the flags say that the name is UTF-8, and it is not
)
_ENCRYPTED: Final = 1
"""The flag of an encrypted entry of a zip file (APPNOTE.TXT 4.4.4)."""


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive into an empty folder. Raises Invalid if it is no archive, is damaged, or exceeds a
    limit; OSError if the folder cannot be written."""
    found = _Unpacking(folder)
    try:
        if zipfile.is_zipfile(archive):
            _read_zip(archive, found)
        else:
            _read_tar(archive, found)
        found.write_links()
    except _WriteError as error:
        raise error.cause from None
    except _DAMAGED as error:
        text = "the file is no archive, or is damaged: give a tar, tar.gz or zip of the folder"
        raise Invalid(text) from error


class _WriteError(Exception):
    def __init__(self, cause: OSError) -> None:
        self.cause = cause


@dataclass(slots=True)
class _Unpacking:
    """The entries that were read so far. files: the octets of regular files. links: the targets of links by name."""

    folder: Path
    files: set[PurePosixPath] = field(default_factory=set)
    links: dict[PurePosixPath, PurePosixPath] = field(default_factory=dict)
    entries: int = 0
    octets: int = 0

    def name(self, text: str) -> PurePosixPath:
        """Count an entry, and return its path in the folder. Raises Invalid."""
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise Invalid(f"the archive has more than {MAX_ENTRIES} entries: pack the folder of FreeRADIUS alone")
        found = PurePosixPath(*[part for part in text.split("/") if part not in ("", ".")])
        if ".." in found.parts or "\0" in text:
            raise Invalid("the archive has an entry outside of its folder")
        if len(found.parts) > MAX_DEPTH or len(text) > MAX_PATH:
            raise Invalid(f"the archive has a path with more than {MAX_DEPTH} folders, or {MAX_PATH} characters")
        return found

    def write(self, name: PurePosixPath, content: IO[bytes]) -> None:
        """Write a file. Raises Invalid, _WriteError."""
        octets = content.read(MAX_OCTETS - self.octets + 1)
        self.octets += len(octets)
        if self.octets > MAX_OCTETS:
            raise Invalid(f"the files of the archive have more than {MAX_OCTETS >> 20} MiB")
        if name in self.files or name in self.links:
            raise Invalid("the archive has an entry twice")
        try:
            place = self.folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(octets)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise Invalid("the archive has a file where it has a folder") from None
        except OSError as error:
            raise _WriteError(error) from error
        self.files.add(name)

    def link(self, name: PurePosixPath, target: str, start: PurePosixPath) -> None:
        """Note a link. start: the folder of the archive that its target is relative to."""
        parts = list(start.parts)
        for part in target.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        if not target.startswith("/") and name not in self.files:
            self.links[name] = PurePosixPath(*parts)

    def write_links(self) -> None:
        """Copy the files that links name. Links to other places, such as certificates of the host, are left out."""
        for name in [*self.links]:
            target, hops = self.links[name], 0
            while target in self.links and hops < MAX_LINKS:
                target, hops = self.links[target], hops + 1
            if target in self.files:
                del self.links[name]
                with (self.folder / target).open("rb") as content:
                    self.write(name, content)


def _read_tar(archive: Path, found: _Unpacking) -> None:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            name = found.name(_text(member.name))
            if member.isreg() and (content := tar.extractfile(member)) is not None:
                found.write(name, content)
            elif member.issym():
                found.link(name, _text(member.linkname), name.parent)
            elif member.islnk():
                found.link(name, _text(member.linkname), PurePosixPath())
            elif not member.isdir():
                raise Invalid("the archive has an entry that is no file, folder or link")


def _text(name: str) -> str:
    """Return a name whose octets may not be UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _read_zip(archive: Path, found: _Unpacking) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in _members(packed):
            name = found.name(member.filename)
            if member.flag_bits & _ENCRYPTED:
                raise Invalid("the archive is encrypted: give it without a password")
            with packed.open(member) as content:
                if stat.S_ISLNK(member.external_attr >> 16):
                    found.link(name, content.read(MAX_PATH).decode(errors="replace"), name.parent)
                else:
                    found.write(name, content)


def _members(packed: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    for member in packed.infolist():
        if not member.filename:
            raise Invalid("the archive has an entry without a name")
        if not member.is_dir():
            yield member

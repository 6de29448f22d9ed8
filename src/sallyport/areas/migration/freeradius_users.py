"""The files of the module `files` of FreeRADIUS: users (`authorize`), huntgroups, and lists of MAC addresses.

An entry is a name with conditions and passwords, and below it, indented, the attributes of the answer (users(5)):

    alice   Cleartext-Password := "secret", NAS-Port-Type == Ethernet
            Tunnel-Private-Group-Id = 20
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sallyport.base.errors import Invalid

MAX_OCTETS: Final = 16 << 20
"""Maximum number of octets of a file together with the files that it includes."""
MAX_FILES: Final = 1000
"""Maximum number of these files. One that is included twice counts twice."""
MAX_ENTRIES: Final = 100_000
MAX_INCLUDES: Final = 16
_PAIR: Final = re.compile(
    r"\s*([A-Za-z0-9][A-Za-z0-9._:/-]*)\s*(:=|\+=|==|=~|!~|!=|<=|>=|<|>|=\*|!\*|=|\^=|-=)\s*"
    r'("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s,]+)\s*(,?)\s*',
    re.DOTALL,
)
_NAME: Final = re.compile(r'("(?:[^"\\]|\\.)*"|\S+)(?:\s+|$)')


@dataclass(frozen=True, slots=True)
class Pair:
    """An attribute with its operator and value."""

    name: str
    sign: str
    value: str


@dataclass(slots=True)
class Entry:
    """An entry of a file. source: `file:line`. problem: why it is not understood; empty if it is."""

    name: str
    source: str
    checks: list[Pair] = field(default_factory=list)
    replies: list[Pair] = field(default_factory=list)
    problem: str = ""

    @property
    def falls_through(self) -> bool:
        """Whether the entries behind it are read too."""
        return any(each.name == "Fall-Through" and each.value.casefold() in ("yes", "1") for each in self.replies)

    def check(self, *names: str) -> Pair | None:
        """Return the first check with one of these names."""
        return next((each for each in self.checks if each.name in names), None)


def entries(path: Path, top: Path) -> list[Entry]:
    """Return the entries of a file and of the files that it includes. top: the folder that has all files. Raises
    Invalid, OSError."""
    found = list[Entry]()
    for line, text, source in _lines(path, top, 0, _Left()):
        if text[:1].isspace():
            if found:
                _add_pairs(found[-1], text, replies=True)
            continue
        if len(found) == MAX_ENTRIES:
            raise Invalid(f"{source}:{line}: more than {MAX_ENTRIES} entries")
        name = _NAME.match(text)
        entry = Entry(_plain(name[1]) if name else text, f"{source}:{line}")
        found.append(entry)
        if name:
            _add_pairs(entry, text[name.end() :], replies=False)
    return found


@dataclass(slots=True)
class _Left:
    """The files and octets that may still be read."""

    files: int = MAX_FILES
    octets: int = MAX_OCTETS


def _lines(path: Path, top: Path, depth: int, left: _Left) -> Iterator[tuple[int, str, str]]:
    if not path.resolve().is_relative_to(top.resolve()):
        raise Invalid(f"{path.name}: the file is outside of the folder")
    if depth > MAX_INCLUDES:
        raise Invalid(f"{path.name}: files include each other more than {MAX_INCLUDES} deep")
    left.files -= 1
    left.octets -= path.stat().st_size
    if left.files < 0 or left.octets < 0:
        limits = f"{MAX_OCTETS >> 20} MiB, or are more than {MAX_FILES} files"
        raise Invalid(f"{path.name}: the file and its included files have more than {limits}")
    source = str(path.resolve().relative_to(top.resolve()))
    for number, octets in enumerate(path.read_bytes().splitlines(), 1):
        text = _decoded(octets)
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if text.startswith("$INCLUDE"):
            name = text.removeprefix("$INCLUDE").strip()
            if "\0" in name:
                raise Invalid(f"{source}:{number}: the name of an included file has a NUL character")
            yield from _lines(path.parent / name, top, depth + 1, left)
        else:
            yield number, text, source


def _decoded(octets: bytes) -> str:
    """Return a line in UTF-8, or else in Latin-1."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def _add_pairs(entry: Entry, text: str, *, replies: bool) -> None:
    at, pairs = 0, entry.replies if replies else entry.checks
    while at < len(text):
        rest = text[at:].strip()
        if not rest or rest.startswith("#"):
            return
        found = _PAIR.match(text, at)
        if found is None:
            entry.problem = "a part of it is not understood"
            return
        pairs.append(Pair(found[1], found[2], _plain(found[3])))
        at = found.end()


def _plain(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text

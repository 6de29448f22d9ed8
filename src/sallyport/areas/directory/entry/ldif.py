"""A parser of LDIF (RFC 2849). It takes octets and yields records. It opens no files and no connections.

A file is split into records at its empty lines. Then all lines of a record are unfolded and split together, which is
faster than to do so for each line. Line numbers are computed only for errors.

The parser accepts three things that RFC 2849 does not allow. A record may have a `changetype` in any file. A record may
have no `changetype` in a file of changes. Text may be UTF-8 without base64. Everything else is parsed strictly. If a
value is given as a URL, the URL is never fetched.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn

from sallyport.areas.directory.entry.descriptions import attribute_key, described, interpreted
from sallyport.areas.directory.entry.entry import MEMBERSHIPS, Raw
from sallyport.base.errors import Invalid

MAX_LINE_SIZE: Final = 4 << 20
"""Maximum size of one unfolded line, in octets."""
MAX_RECORD_SIZE: Final = 16 << 20
"""Maximum size of a record, in octets. A group that contains all accounts of a large company needs less."""
MAX_LINES: Final = 500_000
"""Maximum number of lines in a record. The parser needs several hundred octets of memory for each line."""
MAX_STEPS: Final = 1000
"""Maximum number of parts in one modification. For each part, all values of an attribute are compared."""
_NAME: Final = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)+)(?:;[A-Za-z0-9=*_-]+)*")
_MAX_NAMES: Final = 4096
_RESERVED: Final = ("-", "dn", "changetype", "control")
"""Names that are not attributes of an entry."""


class LdifError(Invalid):
    """The error for a file that is not valid LDIF. line: the number of the faulty line, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line


class LdifStep(StrEnum):
    """A step in the modification of an entry. It says what happens to the values of an attribute."""

    ADD = "add"
    DELETE = "delete"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class EntryContent:
    """The content of an entry, or the addition of an entry. line: the number of the line with the entry's name."""

    line: int
    raw: Raw


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of an entry. line: see `EntryContent`."""

    line: int
    dn: str


@dataclass(frozen=True, slots=True)
class Modification:
    """A change of an entry's attributes. line: see `EntryContent`. steps: triples of an operation, an attribute in
    lower case, and values."""

    line: int
    dn: str
    steps: tuple[tuple[LdifStep, str, tuple[bytes, ...]], ...]


@dataclass(frozen=True, slots=True)
class Renaming:
    """The renaming of an entry. superior: the name of the new parent, or None if the parent does not change."""

    line: int
    dn: str
    new_rdn: str
    deletes_old: bool
    superior: str | None


Record = EntryContent | Deletion | Modification | Renaming
_Line = tuple[int, str, bytes]
"""(index of the line in its record, name of the attribute in the form of `attribute_key`, value). A `-` line has no
value."""


class LdifParser:
    """An incremental parser of an LDIF file. It cannot be used any more after an LdifError."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._line = 1
        self._carriage = b""
        self._begun = False
        self._names: dict[bytes, str] = {}
        self._plain: dict[bytes, str] = {}  # the names of attributes without options

    def feed(self, octets: bytes) -> Iterator[Record]:
        """Parse the next piece of the file, and yield the records that end in it. Raises LdifError."""
        octets = self._carriage + octets
        self._carriage = b"\r" if octets.endswith(b"\r") else b""
        self._pending += octets.removesuffix(b"\r").replace(b"\r\n", b"\n")
        end = self._pending.rfind(b"\n\n", self._searched)
        if end >= 0:
            yield from self._take(end + 2)
        self._searched = max(0, len(self._pending) - 1)
        if len(self._pending) > MAX_RECORD_SIZE:
            blank = len(self._pending) - len(self._pending.lstrip(b"\n"))
            raise LdifError(
                self._line + blank, f"the entry that begins here is larger than {MAX_RECORD_SIZE >> 20} MiB"
            )

    def close(self) -> Iterator[Record]:
        """Yield the last record. Raises LdifError."""
        self._pending += self._carriage
        yield from self._take(len(self._pending))

    def _take(self, end: int) -> Iterator[Record]:
        """Yield the records in the first `end` octets of the pending octets."""
        octets = bytes(self._pending[:end])
        if self._line == 1:
            octets = octets.removeprefix(BOM_UTF8)
        del self._pending[:end]
        self._searched = 0
        for part in octets.split(b"\n\n"):
            own = part.lstrip(b"\n")
            line = self._line + len(part) - len(own)
            self._line += part.count(b"\n") + 2
            if own:
                yield from self._record(own.rstrip(b"\n"), line)
        self._line -= 2  # no empty line follows the last part

    def _record(self, octets: bytes, line: int) -> Iterator[Record]:
        if self._begun and (content := self._plain_content(octets, line)) is not None:
            yield content
            return
        try:
            lines = list(self._lines(octets))
            if not self._begun and lines and lines[0][1] == "version" and lines.pop(0)[2].strip() != b"1":
                _fail(0, "the version must be 1")
            if not lines:
                return
            self._begun = True
            yield _understood(lines, line + _physical(octets, lines[0][0]))
        except _Flaw as flaw:
            raise LdifError(line + _physical(octets, flaw.index), flaw.what) from None

    def _plain_content(self, octets: bytes, line: int) -> EntryContent | None:
        """Return the content of an entry, or None if a line has another form than `name: value`.

        Most records have only such lines, and only names that were parsed before. This method reads them three times as
        fast as `_lines` and `_content`, which return the same for them.
        """
        first, *lines = octets.replace(b"\n ", b"").split(b"\n")
        if not first.startswith(b"dn: ") or len(octets) > MAX_LINE_SIZE or len(lines) >= MAX_LINES:
            return None
        if b"\0" in octets or b"\r" in octets:
            return None
        attributes: dict[str, list[bytes]] = {}
        for each in lines:
            name, mark, value = each.partition(b": ")
            key = self._plain.get(name)
            if key is None or not mark:
                return None
            known = attributes.get(key)
            if known is None:
                attributes[key] = [value.lstrip(b" ")]
            else:
                known.append(value.lstrip(b" "))
        try:
            dn = first[4:].lstrip(b" ").decode()
        except UnicodeDecodeError:
            return None
        return EntryContent(line, Raw(dn, {key: tuple(values) for key, values in attributes.items()}))

    def _lines(self, octets: bytes) -> Iterator[_Line]:
        if octets[:1] == b" ":
            _fail(0, "a space at the start continues a line, but no line precedes")
        if octets.count(b"\n") >= MAX_LINES:
            _fail(0, f"the entry that begins here has more than {MAX_LINES:,} lines")
        for index, line in enumerate(octets.replace(b"\n ", b"").split(b"\n")):
            if line[:1] == b"#":
                continue
            if line == b"-":
                yield index, "-", b""
                continue
            name, mark, rest = line.partition(b":")
            if not mark:
                _fail(index, "no `name: value`")
            if len(rest) > MAX_LINE_SIZE:
                _fail(index, f"the line is longer than {MAX_LINE_SIZE >> 20} MiB")
            yield index, self._names.get(name) or self._name(index, name), _value(index, rest)

    def _name(self, index: int, name: bytes) -> str:
        found = _NAME.fullmatch(name)
        if found is None:
            _fail(index, "the name of the attribute is missing or not valid")
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
            self._plain.clear()
        known = self._names[name] = attribute_key(name.decode("ascii"))
        if ";" not in known and known not in _RESERVED:
            self._plain[name] = known
        return known


class _Flaw(Exception):
    """An error in a line of a record. index: the index of the line in the record, counted after the lines were
    unfolded."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index
        self.what = what


def _fail(index: int, what: str) -> NoReturn:
    raise _Flaw(index, what)


def _physical(octets: bytes, index: int) -> int:
    """Return how many lines of the file a record has before its unfolded line with the index `index`."""
    unfolded = -1
    if index == 0:
        return 0
    for number, line in enumerate(octets.split(b"\n")):
        unfolded += line[:1] != b" "
        if unfolded == index:
            return number
    return 0


def _value(index: int, rest: bytes) -> bytes:
    kind = rest[:1]
    if kind == b":":
        try:
            return b64decode(rest[1:].strip(b" "), validate=True)
        except Base64Error:
            _fail(index, "wrong base64")
    if kind == b"<":
        _fail(index, "the value is in a file or at a URL; give the value itself")
    if b"\0" in rest or b"\r" in rest:
        _fail(index, "a value with a NUL or a carriage return must be in base64")
    return rest.lstrip(b" ")


def _text(line: _Line) -> str:
    try:
        return line[2].decode()
    except UnicodeDecodeError:
        _fail(line[0], "not UTF-8")


def _understood(lines: Sequence[_Line], at: int) -> Record:
    """Return the record that the lines form. at: the number of the line with the record's name."""
    if lines[0][1] != "dn":
        _fail(lines[0][0], "a record must begin with `dn:`")
    dn, rest = _text(lines[0]), lines[1:]
    while rest and rest[0][1] == "control":
        if b" true" in rest[0][2].lower():
            _fail(rest[0][0], "a critical control is not supported")
        rest = rest[1:]
    if not rest or rest[0][1] != "changetype":
        return _content(dn, rest, at)
    kind, rest = rest[0][2].strip().lower(), rest[1:]
    if kind == b"add":
        return _content(dn, rest, at)
    if kind == b"delete":
        if rest:
            _fail(rest[0][0], "a deletion must have no further lines")
        return Deletion(at, dn)
    if kind == b"modify":
        return Modification(at, dn, tuple(_steps(rest)))
    if kind in (b"modrdn", b"moddn"):
        return _renaming(dn, rest, at, lines[-1][0])
    _fail(lines[1][0], "changetype must be add, delete, modify, modrdn or moddn")


def _content(dn: str, lines: Sequence[_Line], at: int) -> EntryContent:
    attributes: dict[str, list[bytes]] = {}
    for index, name, value in lines:
        if name in _RESERVED:
            _fail(index, f"`{name}` is not an attribute of an entry: put an empty line between entries")
        known = attributes.get(name)
        if known is None:
            attributes[name] = [value]
        else:
            known.append(value)
    return EntryContent(at, Raw(dn, interpreted((name, tuple(values)) for name, values in attributes.items())))


def _steps(lines: Sequence[_Line]) -> Iterator[tuple[LdifStep, str, tuple[bytes, ...]]]:
    at = count = 0
    while at < len(lines):
        index, kind, attribute = lines[at]
        count += 1
        if count > MAX_STEPS:
            _fail(index, f"a modification has at most {MAX_STEPS:,} parts")
        if kind not in (LdifStep.ADD, LdifStep.DELETE, LdifStep.REPLACE):
            _fail(index, "expected add, delete or replace")
        name = _NAME.fullmatch(attribute.strip())
        if name is None:
            _fail(index, "the name of the attribute is missing or not valid")
        wanted, values = attribute_key(name[0].decode("ascii")), list[bytes]()
        at += 1
        while at < len(lines) and lines[at][1] != "-":
            if lines[at][1] != wanted:
                _fail(lines[at][0], f"expected a value of `{wanted}`, or `-`")
            values.append(lines[at][2])
            at += 1
        if kind == LdifStep.ADD and not values:
            _fail(index, "nothing is added")
        yield from _steps_of(LdifStep(kind), wanted, tuple(values))
        at += 1


def _steps_of(kind: LdifStep, key: str, values: tuple[bytes, ...]) -> Iterator[tuple[LdifStep, str, tuple[bytes, ...]]]:
    """Yield what a step changes: the attribute with its options, and the attribute to which the values belong.

    A value in another language is one of several values of the attribute. To replace or delete such values does not
    delete the other values.
    """
    meaning = described(key)
    if not meaning.key:
        return
    if meaning.key != meaning.attribute:
        yield kind, meaning.key, values
    if not meaning.attribute or (meaning.part is not None and meaning.attribute in MEMBERSHIPS):
        return
    if not meaning.is_tagged:
        yield kind, meaning.attribute, values
    elif values:
        yield LdifStep.ADD if kind == LdifStep.REPLACE else kind, meaning.attribute, values


def _renaming(dn: str, lines: Sequence[_Line], at: int, end: int) -> Renaming:
    named = {name: line for line in lines if (name := line[1]) in ("newrdn", "deleteoldrdn", "newsuperior")}
    if len(named) < len(lines):
        _fail(end, "a renaming may have only newrdn, deleteoldrdn and newsuperior, each once")
    if "newrdn" not in named or "deleteoldrdn" not in named:
        _fail(end, "a renaming must have newrdn and deleteoldrdn")
    if named["deleteoldrdn"][2].strip() not in (b"0", b"1"):
        _fail(named["deleteoldrdn"][0], "deleteoldrdn must be 0 or 1")
    superior = named.get("newsuperior")
    return Renaming(
        at,
        dn,
        _text(named["newrdn"]),
        named["deleteoldrdn"][2].strip() == b"1",
        None if superior is None else _text(superior),
    )

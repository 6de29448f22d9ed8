"""Names, types and values of RADIUS attributes for people: in logs, JSON, rules and reply attributes.

The codec does not interpret the values of a packet. This module converts octets to text and text to octets, with one
dictionary. The dictionary is loaded once, from the files of the package and from the admin's directories.

- pyrad parses the files. `values` converts octets and text, by the type that the files define.
- This module resolves $INCLUDE, so that every error and note has a file and a line. A file that several files include
  is read once.
- Octets from the network never cause an error: a value that does not fit its type is shown as `0x...`. A text from an
  admin must fit the type; the error names the attribute.
- Passwords, keys and values derived from them are shown as `***`, so that no secret reaches a log.
- If a number has several names, each name is accepted, and the name that was defined last is shown (as in FreeRADIUS).
"""

import codecs
import difflib
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pyrad.dictionary import Attribute as ParsedAttribute
from pyrad.dictionary import Dictionary as Parsed
from pyrad.dictionary import ParseError

from sallyport.base.errors import DictionaryError
from sallyport.base.shipped import shipped
from sallyport.radius.values import (
    MISFITS,
    NUMBERS,
    Attribute,
    DataType,
    as_hex,
    as_octets,
    as_text,
    join_tag,
    split_tag,
)

_TAGGED: Final = re.compile(r"(.+):([0-9]{1,2})")
_UNNAMED: Final = re.compile(r"(?i)Attr-(?:26\.([0-9]{1,10})\.)?([0-9]{1,3})")
_LEFTOVERS: Final = ("~", ".bak", ".orig", ".rpmnew", ".rpmsave", ".dpkg-dist", ".dpkg-new", ".dpkg-old")
_KEYWORDS: Final = frozenset({"ATTRIBUTE", "VALUE", "VENDOR", "BEGIN-VENDOR", "END-VENDOR"})


class Dictionary:
    """The known attributes and vendors, as `load` returns them. A Dictionary is immutable."""

    def __init__(
        self,
        attributes: Mapping[str, Attribute],
        shown: Mapping[tuple[int, int], str],
        vendors: Mapping[int, str],
        notes: tuple[str, ...] = (),
    ) -> None:
        """attributes: all attributes by name. shown: for each (vendor, number), the name to show. vendors: the names of
        the vendors by number. notes: messages about skipped entries, for the log."""
        self.attributes: Final = MappingProxyType(dict(attributes))
        self.vendors: Final = MappingProxyType(dict(vendors))
        self.notes: Final = notes
        self._named: Final = {name.casefold(): attribute for name, attribute in attributes.items()}
        self._numbered: Final = {place: attributes[name] for place, name in shown.items()}

    def attribute(self, name: str) -> Attribute:
        """Return the attribute with a name, ignoring case. The name must not contain a tag.

        `Attr-N` and `Attr-26.VENDOR.N` are attributes of the type octets. Raises DictionaryError if no attribute has
        this name; the message suggests a similar name.
        """
        attribute = self._named.get(name.casefold()) or _unnamed(name)
        if attribute is None:
            near = difflib.get_close_matches(name.casefold(), self._named, 1)
            raise DictionaryError(f"no RADIUS attribute {name!r}" + "".join(f"; {self._named[n].name}?" for n in near))
        return attribute

    def find(self, vendor: int, number: int) -> Attribute | None:
        """Return the attribute with this vendor and type number. Return None if no file defines it. vendor: 0 for the
        attributes of the RFCs."""
        return self._numbered.get((vendor, number))

    def name(self, vendor: int, number: int) -> str:
        """Return the name to show for an attribute. If the dictionary has no name for it, return `Attr-N` or
        `Attr-26.VENDOR.N`, as FreeRADIUS does. The method `attribute` accepts all these names."""
        attribute = self.find(vendor, number)
        if attribute is not None:
            return attribute.name
        return f"Attr-26.{vendor}.{number}" if vendor else f"Attr-{number}"

    def value_name(self, attribute: str, number: int) -> str | None:
        """Return the name of a value of an attribute, or None if it has none. Raises the errors of `attribute`."""
        return self.attribute(attribute).value_name(number)

    def decode(self, vendor: int, number: int, octets: bytes) -> str:
        """Return a value as printable text in one line, for a log or JSON. The tag is left out, and a secret becomes
        `***`.

        octets: the value as received. If the attribute is unknown, or the value does not fit the type, the text is
        `0x...`. So this method raises no errors.
        """
        return self.show(vendor, number, octets)[1]

    def show(self, vendor: int, number: int, octets: bytes) -> tuple[str, str]:
        """Return the attribute's name, with its tag, and the value as text: ("Tunnel-Type:1", "VLAN"). This method
        raises no errors (see `decode`)."""
        attribute = self.find(vendor, number)
        if attribute is None:
            return self.name(vendor, number), as_hex(octets)
        if attribute.secret:
            return attribute.name, "***"
        try:
            tag, value = split_tag(attribute, octets)
            return f"{attribute.name}:{tag}" if tag else attribute.name, as_text(attribute, value)
        except MISFITS:
            return attribute.name, as_hex(octets)

    def encode(self, name: str, text: str) -> bytes:
        """Return the octets of an attribute's value, for a reply. This is the inverse of `decode`.

        name: the name of the attribute, followed by `:TAG` (0..31) if the attribute has tags. text: the name or number
        of a value, an address, an ISO 8601 time, plain text, or `0x...` for octets. The result has 1..253 octets (at
        most 247 for a vendor attribute), and begins with the tag if there is one. A value that must be encrypted in a
        reply is returned in clear. Raises DictionaryError if the text does not fit the attribute; the message names the
        attribute.
        """
        base, tag = _named_tag(name)
        attribute = self.attribute(base)
        if attribute.parent:
            raise DictionaryError(
                f"{attribute.name} is a part of {attribute.parent}: write the whole {attribute.parent} as 0x..."
            )
        if tag is not None and not attribute.has_tag:
            raise DictionaryError(f"{attribute.name} takes no tag (RFC 2868)")
        octets = join_tag(attribute, tag or 0, as_octets(attribute, text))
        if len(octets) > attribute.room:
            raise DictionaryError(
                f"{attribute.name}: the value has {len(octets)} octets, but at most {attribute.room} fit"
            )
        return octets


def packaged() -> Path:
    """Return the directory of the dictionaries that come with Sallyport. Raises StartError if it does not exist."""
    return shipped("dictionaries", "dictionary", "the RADIUS dictionaries")


def load(*directories: Path) -> Dictionary:
    """Load the dictionaries of the package, and then the files `dictionary*` of each directory, sorted by name.

    A file may name vendors, add values to attributes, and redefine attributes. pyrad does not support all entries; the
    others are skipped, and `notes` lists them. Raises DictionaryError if a file cannot be read or parsed. The message
    contains the file and the line.
    """
    return _load(directories) if directories else _packaged_alone()


@cache
def _packaged_alone() -> Dictionary:
    """Return the dictionaries of the package. They are read once in a process, because that takes 50 ms."""
    return _load(())


def _load(directories: Sequence[Path]) -> Dictionary:
    loader = _Loader()
    loader.read(packaged() / "dictionary")
    if loader.notes:
        raise DictionaryError(loader.notes[0])
    for directory in directories:
        for path in _dictionary_files(directory):
            loader.read(path)
    return loader.finish()


def _dictionary_files(directory: Path) -> list[Path]:
    """Return the dictionary files of a directory. The backup files of editors and package managers are left out."""
    try:
        names = [path for path in directory.iterdir() if path.name.startswith("dictionary")]
    except OSError as error:
        raise DictionaryError(f"{directory}: {error.strerror}") from error
    return sorted(path for path in names if path.is_file() and not path.name.endswith(_LEFTOVERS))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a dictionary file: its number (from 1 on), and its words without the comment."""

    file: Path
    number: int
    words: tuple[str, ...]

    def says(self, message: str) -> str:
        return f"{self.file}, line {self.number}: {message}"


class _Loader:
    """The loading of all files into one pyrad dictionary. Skipped entries are collected as notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._parsed = Parsed()
        self._seen: set[Path] = set()
        self._tlvs = 0

    def read(self, path: Path) -> None:
        """Read a file and all files that it includes. Files that were already read are skipped."""
        try:
            lines = list(self._lines(path))
        except OSError as error:
            raise DictionaryError(f"{path}: {error.strerror}") from error
        before = dict(self._parsed.attributes)
        self._tlvs = 0
        source = StringIO("".join(f"{self._checked(line)}\n" for line in lines))
        with _listening(lines, self.notes):
            try:
                self._parsed.ReadDictionary(source)
            except ParseError as error:
                raise DictionaryError(lines[error.line - 1].says(error.msg)) from error
        for name, old in before.items():
            if self._parsed.attributes[name] is not old:
                self._redefined(path, name, old)

    def finish(self) -> Dictionary:
        """Return the dictionary of all files that were read. If a number has several names, the dictionary shows the
        name that was defined last."""
        attributes = {name: self._attribute(name, parsed) for name, parsed in self._parsed.attributes.items()}
        names = [*attributes, *self._parsed.attrindex.backward.values()]
        whole = (attributes[name] for name in names if not attributes[name].parent)
        shown = {(attribute.vendor, attribute.number): attribute.name for attribute in whole}
        vendors = {number: name for name, number in self._parsed.vendors.forward.items() if number}
        return Dictionary(attributes, shown, vendors, tuple(self.notes))

    def _attribute(self, name: str, parsed: ParsedAttribute) -> Attribute:
        kind = DataType(parsed.type)
        return Attribute(
            name=name,
            vendor=self._parsed.vendors.GetForward(parsed.vendor),
            number=parsed.code,
            type=kind,
            has_tag=parsed.has_tag,
            encrypt=parsed.encrypt,
            parent=parsed.parent.name if parsed.parent is not None else "",
            values=_values(parsed.values.forward, kind),
        )

    def _redefined(self, path: Path, name: str, old: ParsedAttribute) -> None:
        """If a file repeats the definition of an attribute, keep the attribute's named values, because pyrad would drop
        them. Add a note if the new definition differs from the old definition."""
        new = self._parsed.attributes[name]
        if self._attribute(name, new) == self._attribute(name, old):
            new.values.forward = {**old.values.forward, **new.values.forward}
        else:
            self.notes.append(f"{path}: {name} is defined again, and differently")

    def _lines(self, path: Path) -> Iterator[_Line]:
        """Yield the non-empty lines of a file. The lines of an included file replace the line with $INCLUDE."""
        if path.resolve() in self._seen:
            return
        self._seen.add(path.resolve())
        for number, octets in enumerate(path.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines(), 1):
            line = _line(path, number, octets)
            if line.words and line.words[0].upper() in {"$INCLUDE", "$INCLUDE-"}:
                yield from self._included(line)
            elif line.words:
                yield line

    def _included(self, line: _Line) -> Iterator[_Line]:
        path = line.file.parent / " ".join(line.words[1:])
        if line.words[0].endswith("-") and not path.exists():
            return
        try:
            yield from self._lines(path)
        except OSError as error:
            raise DictionaryError(line.says(f"cannot read {path}: {error.strerror}")) from error

    def _checked(self, line: _Line) -> str:
        """Return the line in a form that pyrad accepts. Return "" if the line must be skipped."""
        keyword = line.words[0].upper()
        if keyword == "BEGIN-TLV":
            self._tlvs += 1
            self.notes.append(line.says(f"skipping the parts of TLV {line.words[-1]}"))
        elif keyword == "END-TLV" and self._tlvs:
            self._tlvs -= 1
        elif keyword not in _KEYWORDS:
            raise DictionaryError(line.says(f"unknown keyword {line.words[0]}"))
        elif keyword == "VENDOR" and len(line.words) == 4 and "=" not in line.words[3]:
            raise DictionaryError(line.says(f"unknown option {line.words[3]}"))
        elif not self._tlvs:
            return self._attribute_line(line) if keyword == "ATTRIBUTE" else " ".join(line.words)
        return ""

    def _attribute_line(self, line: _Line) -> str:
        """Return the line with the type in lower case. Return "" for an internal attribute of FreeRADIUS."""
        keyword, name, number, kind, *flags = (*line.words, "", "", "")
        if _beyond_an_octet(number):
            self.notes.append(line.says(f"skipping attribute {name}: number {number} is never on the wire"))
            return ""
        return " ".join((keyword, name, number, kind.lower(), *flags))


class _Notes(logging.Filter):
    """A log filter that turns pyrad's messages about skipped lines into notes with file and line.

    pyrad logs `(LINE): TEXT` without the file. Messages of other threads are not collected.
    """

    def __init__(self, lines: list[_Line], notes: list[str]) -> None:
        super().__init__()
        self._lines = lines
        self._notes = notes
        self._said: set[str] = set()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        place, _, what = record.getMessage().partition("): ")
        if what and what not in self._said:
            self._said.add(what)
            self._notes.append(self._lines[int(place.removeprefix("(")) - 1].says(what))
        return False


@contextmanager
def _listening(lines: list[_Line], notes: list[str]) -> Iterator[None]:
    """Collect pyrad's log messages of all levels during the block. The service's log does not get these messages."""
    logger, taken = logging.getLogger("pyrad"), _Notes(lines, notes)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addFilter(taken)
    try:
        yield
    finally:
        logger.removeFilter(taken)
        logger.setLevel(level)


def _line(path: Path, number: int, octets: bytes) -> _Line:
    """Split a line into words. A comment may have any encoding; everything else must be UTF-8."""
    try:
        return _Line(path, number, tuple(octets.partition(b"#")[0].decode().split()))
    except UnicodeDecodeError as error:
        raise DictionaryError(_Line(path, number, ()).says("not UTF-8")) from error


def _beyond_an_octet(number: str) -> bool:
    """Return whether a number, or one of the two numbers of `TLV.PART`, is outside 0..255. FreeRADIUS uses such numbers
    for its internal attributes, which are never in a packet."""
    with suppress(ValueError):  # pyrad will report a malformed number
        return not all(0 <= int(part, 0) <= 255 for part in number.split("."))
    return False


def _values(named: Mapping[str, bytes], kind: DataType) -> Mapping[str, int]:
    """Convert the named values of an attribute from octets (as pyrad stores them) to numbers."""
    if kind not in NUMBERS:
        return MappingProxyType({})
    return MappingProxyType({n: int.from_bytes(v, signed=kind is DataType.SIGNED) for n, v in named.items()})


def _unnamed(name: str) -> Attribute | None:
    """Return an attribute of the type octets for the names `Attr-N` and `Attr-26.VENDOR.N`. Return None for other
    names."""
    match = _UNNAMED.fullmatch(name)
    if match is None:
        return None
    vendor, number = int(match[1] or 0), int(match[2])
    known = vendor < 1 << 32 and number <= 255 and (match[1] is None or vendor > 0)
    return Attribute(name, vendor, number, DataType.OCTETS) if known else None


def _named_tag(name: str) -> tuple[str, int | None]:
    """Split `Tunnel-Type:1` into the name and the tag. The tag is None if the text has no tag."""
    match = _TAGGED.fullmatch(name)
    if match is None:
        return name, None
    if int(match[2]) > 0x1F:
        raise DictionaryError(f"{match[1]}: tag {match[2]} is not 0..31 (RFC 2868 section 3.1)")
    return match[1], int(match[2])

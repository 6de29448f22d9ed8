"""A reader of XML files that may be hostile.

The expat parser of Python streams the file. A document type is refused, because it is the only way to declare
entities, which can grow to gigabytes ("billion laughs") or read other files. The number of elements, their depth and
the length of their texts are limited.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from sallyport.base.errors import Invalid

MAX_OCTETS: Final = 256 << 20
MAX_ELEMENTS: Final = 400_000
MAX_DEPTH: Final = 64
MAX_TEXT: Final = 1 << 16
_PIECE: Final = 1 << 18


@dataclass(slots=True)
class Element:
    """An element. text: the text before its first child, without white space around it. line: from 1. is_read: whether
    a reader has used the element; see `unread`."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list["Element"] = field(default_factory=list)
    is_read: bool = False

    @property
    def name(self) -> str:
        """The attribute `name`; else the tag."""
        return self.attributes.get("name") or self.tag

    def child(self, tag: str) -> "Element | None":
        """Return the first child with a tag, and mark it as read."""
        found = next((each for each in self.children if each.tag == tag), None)
        if found is not None:
            found.is_read = True
        return found

    def all(self, tag: str) -> list["Element"]:
        """Return all children with a tag, and mark them as read."""
        found = [each for each in self.children if each.tag == tag]
        for each in found:
            each.is_read = True
        return found

    def value(self, tag: str) -> str:
        """Return the text of the first child with a tag; empty if there is none."""
        found = self.child(tag)
        return "" if found is None else found.text

    def mark(self) -> None:
        """Mark the element and everything below it as read."""
        self.is_read = True
        for each in self.children:
            each.mark()

    def unread(self) -> Iterator["Element"]:
        """Yield the highest elements that no reader has used."""
        for each in self.children:
            if each.is_read:
                yield from each.unread()
            else:
                yield each


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._texts: list[str] = []
        self._length = 0
        self._count = 0
        self.parser: expat.XMLParserType

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._end_text()
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise Invalid(f"the file has more than {MAX_ELEMENTS} elements: export it in parts")
        if len(self._open) == MAX_DEPTH:
            raise Invalid(f"line {self.parser.CurrentLineNumber}: elements are nested more than {MAX_DEPTH} deep")
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _: str) -> None:
        self._end_text()
        self._open.pop()

    def text(self, text: str) -> None:
        self._length += len(text)
        if self._length > MAX_TEXT:
            raise Invalid(f"line {self.parser.CurrentLineNumber}: a text has more than {MAX_TEXT} characters")
        self._texts.append(text)

    def _end_text(self) -> None:
        if self._open and not self._open[-1].children:
            self._open[-1].text += "".join(self._texts).strip()
        self._texts.clear()
        self._length = 0


def _refuse(*_: object) -> None:
    raise Invalid("the file has a document type (DTD), which no export has: it may be an attack")


def read(path: Path) -> Element:
    """Return the root of an XML file in UTF-8, UTF-16 or the encoding that it declares. Raises Invalid, OSError."""
    if path.stat().st_size > MAX_OCTETS:
        raise Invalid(f"the file has more than {MAX_OCTETS >> 20} MiB")
    builder = _Builder()
    with path.open("rb") as file:
        head = file.read(256)
        # A file that says UTF-16, but was saved as UTF-8 by an editor
        says_utf16 = head.removeprefix(b"\xef\xbb\xbf").startswith(b"<?xml") and b"utf-16" in head.lower()
        parser = builder.parser = expat.ParserCreate("utf-8" if says_utf16 else None)
        parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
        parser.CharacterDataHandler = builder.text
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _refuse
        file.seek(0)
        try:
            while piece := file.read(_PIECE):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            text = expat.ErrorString(error.code)
            hint = " (the file is truncated)" if error.code == 3 or builder.root is None else ""
            raise Invalid(f"line {error.lineno}: the file is not valid XML: {text}{hint}") from None
        except (LookupError, UnicodeError, ValueError) as error:
            raise Invalid("the encoding of the file is not known: save it as UTF-8") from error
    if builder.root is None:
        raise Invalid("the file has no XML element")
    return builder.root

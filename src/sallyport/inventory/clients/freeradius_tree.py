"""The sections and items of a FreeRADIUS 3 configuration, with its includes read and its references replaced.

References are replaced as FreeRADIUS does it: when an item is read, from the items above it; unknown ones once more at
the end. So an item with a late reference cannot itself be referred to. An item with an unknown reference is kept with
its problem, so that one client's mistake does not hide the others.

A file may be hostile: octets, files, statements and depths are bounded, only regular files are opened, and a file that
includes itself is refused (FreeRADIUS crashes).
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from sallyport.base.errors import ClientsFileError
from sallyport.inventory.clients.freeradius_syntax import MAX_LINE, Line, lines

MAX_OCTETS: Final = 16 * 1024 * 1024
MAX_FILES: Final = 10_000
MAX_STATEMENTS: Final = 500_000
MAX_INCLUDES: Final = 16
MAX_SECTIONS: Final = 64

_REFERENCE: Final = re.compile(r"\$(?P<env>ENV)?\{(?P<name>[^}]*)(?P<end>\}?)")
_STEP: Final = re.compile(r"(?P<kind>[^.\[]+)(?:\[(?P<label>[^\]]*)\])?(?:\.|$)")
_INCLUDED: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_DIRECTIVES: Final = frozenset({"$include", "$-include", "$template"})
_UPDATES: Final = frozenset({"++", "+=", "-=", "^=", "!=", ">=", ">", "<=", "<", "==", "!*"})


class _UnknownError(Exception):
    """A reference that cannot be replaced now; the message names it."""


@dataclass(slots=True, eq=False)
class Item:
    """`name = value`; an item without a value has an empty one.

    where: `file:line`. late: it refers to what follows it. problem: why it has no value, empty when it has.
    """

    value: str
    where: str
    late: bool = False
    problem: str = ""


@dataclass(slots=True, eq=False)
class Section:
    """`kind label { ... }`. Of equal items the first counts; `repeated` names the others."""

    kind: str
    label: str | None
    where: str
    parent: "Section | None" = None
    depth: int = 0
    items: dict[str, Item] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    sections: list["Section"] = field(default_factory=list)
    template: "Section | None" = None
    _firsts: dict[tuple[str, str | None], "Section"] = field(default_factory=dict)

    def open(self, kind: str, label: str | None, where: str) -> "Section":
        """A new section in this one."""
        inner = Section(kind, label, where, parent=self, depth=self.depth + 1)
        self.sections.append(inner)
        self._firsts.setdefault((kind, label), inner)
        self._firsts.setdefault((kind, None), inner)
        return inner

    def add(self, name: str, item: Item) -> None:
        """Put an item here, unless there is one of that name."""
        if name in self.items:
            self.repeated.append(name)
        else:
            self.items[name] = item

    def first(self, kind: str, label: str | None = None) -> "Section | None":
        """The first section of that kind, with that label if one is given."""
        return self._firsts.get((kind, label))

    def find(self, name: str, top: "Section") -> Item | None:
        """The item that a reference names: `x` (here, else at the top), `.x`, `..x`, `kind.x`, `kind[label].x`."""
        if "." not in name:
            return self.items.get(name) or top.items.get(name)
        path = name.lstrip(".")
        here: Section | None = self if path != name else top
        for _ in range(len(name) - len(path) - 1):
            here = here and (here.parent or here)
        *steps, last = [(found["kind"], found["label"]) for found in _STEP.finditer(path)] or [("", None)]
        for step in steps:
            here = here and here.first(*step)
        return here.items.get(last[0]) if here else None


class Parser:
    """Reads one file and its includes into `top`; for one use.

    environ: the values of `$ENV{NAME}`; an unknown name is a problem of the item that uses it.
    """

    def __init__(self, environ: Mapping[str, str], *, max_statements: int = MAX_STATEMENTS) -> None:
        self.top = Section("", None, "")
        self._environ = environ
        self._octets, self._files = MAX_OCTETS, MAX_FILES
        self._statements = self._max_statements = max_statements
        self._including: list[tuple[int, int]] = []
        self._late: list[tuple[Section, Item]] = []

    def parse(self, path: Path) -> Section:
        """The tree of a file. Raises ClientsFileError: `file:line: what`."""
        self.top.add("confdir", Item(os.fsencode(path.parent).decode("latin-1"), str(path)))
        self._file(path, self.top, str(path))
        for section, item in self._late:
            try:
                item.value = self._expanded(item.value, section, item.where)
            except _UnknownError as unknown:
                item.problem = str(unknown)
        return self.top

    def _file(self, path: Path, floor: Section, asked: str) -> None:
        """Read a file into a section. asked: where it is included, for messages."""
        identity, text = self._load(path, asked)
        self._including.append(identity)
        here = floor
        for line in lines(text, str(path)):
            while line.peek() not in ("", "#"):
                here = self._statement(line, here, floor)
        if here is not floor:
            raise ClientsFileError(f"{here.where}: the section is not closed in its file")
        self._including.pop()

    def _load(self, path: Path, asked: str) -> tuple[tuple[int, int], str]:
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):  # before open(): a pipe would never answer
                raise ClientsFileError(f"{asked}: {path} is no file (a directory is included with a / behind it)")
            with path.open("rb") as stream:
                octets = stream.read(self._octets + 1)
        except (OSError, ValueError) as error:
            raise ClientsFileError(f"{asked}: cannot read: {error}") from error
        self._octets -= len(octets)
        self._files -= 1
        identity = (status.st_dev, status.st_ino)
        self._check(identity, octets, f"{asked}: {path}")
        return identity, octets.decode("latin-1")

    def _check(self, identity: tuple[int, int], octets: bytes, what: str) -> None:
        if self._octets < 0 or self._files < 0:
            raise ClientsFileError(f"{what}: more than {MAX_OCTETS} octets or {MAX_FILES} files in all")
        if identity in self._including:
            raise ClientsFileError(f"{what} includes itself")
        if len(self._including) > MAX_INCLUDES:
            raise ClientsFileError(f"{what}: included more than {MAX_INCLUDES} files deep")
        if octets.startswith(b"\xef\xbb\xbf"):
            raise ClientsFileError(f"{what} begins with a byte order mark; FreeRADIUS overlooks its first section")
        if b"\0" in octets:
            raise ClientsFileError(f"{what} holds a NUL octet")

    def _statement(self, line: Line, here: Section, floor: Section) -> Section:
        """Read one item, section head, section end or directive; the section that is open after it."""
        self._statements -= 1
        if self._statements < 0:
            raise line.error(f"more than {self._max_statements} statements in all")
        if line.at_expansion():
            line.end()
            return here
        name = line.pull_token(name=True)
        if name == ("operator", "}"):
            return self._close(line, here, floor)
        if name.kind == "bare" and name.text.lower() in _DIRECTIVES:
            self._directive(line, here, name.text.lower())
            return here
        if name.kind == "bare" and name.text in ("if", "elsif", "map"):
            line.pull_condition()
            return self._open(line, here, name.text, None)
        return self._item_or_section(line, here, name.text)

    def _directive(self, line: Line, here: Section, name: str) -> None:
        """$INCLUDE, $-INCLUDE or $TEMPLATE; what follows the word in its line is ignored, as FreeRADIUS does."""
        word = line.pull_word()
        line.end()
        if not word:
            raise line.error(f"{name.upper()} without a name")
        if name != "$template":
            self._include(line, here, word, optional=name == "$-include")
            return
        if here.template is not None:
            raise line.error("a second template for one section")
        templates = self.top.first("templates")
        here.template = templates and templates.first(word)
        if here.template is None:
            raise line.error("the template is not defined above its use")

    def _include(self, line: Line, here: Section, word: str, *, optional: bool) -> None:
        """A file, or with a / behind its name the files of a directory; a missing directory is never optional."""
        try:
            target = os.fsdecode(self._expanded(word, here, line.where).encode("latin-1"))
        except _UnknownError as unknown:
            raise line.error(str(unknown)) from None
        # Relative to the including file, unless it begins with a reference: then to the working directory.
        path = Path(target) if word.startswith("$") else Path(line.file).parent / target
        if target.endswith("/"):
            self._directory(path, here, line)
        elif not optional or _mode(path):
            self._file(path, here, line.where)

    def _directory(self, path: Path, here: Section, line: Line) -> None:
        """Every file of a directory in the order of their names (FreeRADIUS takes the order of the disk)."""
        try:
            found = sorted(path.iterdir())
        except (OSError, ValueError) as error:
            raise line.error(f"cannot read: {error}") from error
        for inner in found:
            mode = _mode(inner) if _INCLUDED.fullmatch(inner.name) else 0
            if mode and not S_ISDIR(mode):
                self._file(inner, here, line.where)

    def _item_or_section(self, line: Line, here: Section, name: str) -> Section:
        kind, text = line.pull_token(name=False)
        if kind == "end" or (kind == "operator" and text in "#,"):
            here.add(name, Item("", line.where))
            line.end()  # after a comma too: FreeRADIUS ignores what follows an item without a value
        elif kind == "operator" and text != "{":
            if text not in ("=", ":=") and not (text in _UPDATES and here.kind in ("update", "map")):
                raise line.error(f"{text} is not expected after a name here")
            self._value(line, here, name)
        elif kind == "`" or (kind != "operator" and line.pull_token(name=True) != ("operator", "{")):
            raise line.error("an = or a section is expected after a name")
        else:
            return self._open(line, here, name, None if kind == "operator" else text)
        return here

    def _value(self, line: Line, here: Section, name: str) -> None:
        token = line.pull_value()
        item = Item(token.text, line.where)
        if token.kind != "'":
            try:
                item.value = self._expanded(token.text, here, line.where)
            except _UnknownError:
                item.late = True
                self._late.append((here, item))
        here.add(name, item)
        following = line.peek()
        if following == ",":
            line.at += 1
        elif following not in ("", "#", "}"):
            raise line.error("a comma or the end of the line is expected after a value")

    def _open(self, line: Line, here: Section, kind: str, label: str | None) -> Section:
        if here.depth == MAX_SECTIONS:
            raise line.error(f"more than {MAX_SECTIONS} sections within each other")
        try:
            return here.open(kind, label and self._expanded(label, here, line.where), line.where)
        except _UnknownError as unknown:
            raise line.error(str(unknown)) from None

    def _close(self, line: Line, here: Section, floor: Section) -> Section:
        if here is floor or here.parent is None:
            raise line.error("a } closes nothing")
        if here.template is not None:
            here.items = here.template.items | here.items
        return here.parent

    def _expanded(self, text: str, here: Section, where: str) -> str:
        """The text with its references replaced, once: what they bring in is not looked at again."""
        parts: list[str] = []
        at = size = 0
        for found in _REFERENCE.finditer(text):
            if not found["end"]:
                raise ClientsFileError(f"{where}: a reference is not closed")
            parts += text[at : found.start()], self._referred(found, here)
            size += len(parts[-1])
            if size > MAX_LINE:
                raise ClientsFileError(f"{where}: a value is too long")
            at = found.end()
        return "".join((*parts, text[at:]))

    def _referred(self, found: re.Match[str], here: Section) -> str:
        name = found["name"]
        if found["env"]:
            if name not in self._environ:
                raise _UnknownError(f"the environment variable {name!r} is not set")
            return os.fsencode(self._environ[name]).decode("latin-1")
        item = here.find(name, self.top)
        if item is None:
            raise _UnknownError(f"the reference {found[0]!r} names no item")
        if item.late:
            raise _UnknownError(f"the reference {found[0]!r} names an item that refers to what follows it")
        return item.value


def _mode(path: Path) -> int:
    """Return stat's mode of a path; 0 if it cannot be read."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0

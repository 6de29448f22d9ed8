"""Parser of FreeRADIUS 3 configuration files. It builds sections and items, and resolves includes and references.

Like FreeRADIUS, the parser resolves a reference as soon as it reads the item. At this time it knows only the items
above. If the reference is unknown at this time, the parser resolves it after the last line. Such a reference is called
late. No item can refer to an item that has a late reference. If a reference stays unknown, its item is kept together
with the problem, so that a mistake in one client does not hide the other clients.

A file may be hostile. Therefore octets, files, statements and depths are limited, and only regular files are opened. A
file that includes itself is an error (FreeRADIUS crashes).
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from sallyport.areas.clients.freeradius_syntax import MAX_LINE, Line, lines
from sallyport.base.errors import ClientsFileError

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
    """A reference cannot be resolved at this point of the file. The message names the reference."""


@dataclass(slots=True, eq=False)
class Item:
    """The value of an item `name = value`.

    value: the text; empty if the item has none. where: the position of the item, as `file:line`. late: whether the
    value refers to an item further down in the file. problem: the reason why the value cannot be resolved, or an empty
    string.
    """

    value: str
    where: str
    late: bool = False
    problem: str = ""


@dataclass(slots=True, eq=False)
class Section:
    """A section `kind label { ... }`.

    If several items have the same name, the first item counts. repeated: the names of the ignored items.
    """

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
        """Add an inner section to this section, and return the inner section."""
        inner = Section(kind, label, where, parent=self, depth=self.depth + 1)
        self.sections.append(inner)
        self._firsts.setdefault((kind, label), inner)
        self._firsts.setdefault((kind, None), inner)
        return inner

    def add(self, name: str, item: Item) -> None:
        """Add an item, unless the section already has an item of the same name."""
        if name in self.items:
            self.repeated.append(name)
        else:
            self.items[name] = item

    def first(self, kind: str, label: str | None = None) -> "Section | None":
        """Return the first inner section of a kind, or None. With a label, return the first section of the kind with
        this label."""
        return self._firsts.get((kind, label))

    def find(self, name: str, top: "Section") -> Item | None:
        """Return the item that a reference names, or None.

        The forms of a reference are `x` (an item of this section or of `top`), `.x`, `..x`, `kind.x` and
        `kind[label].x`.
        """
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
    """A parser of one file and its included files. A parser can be used only once.

    top: the section that contains all other sections. environ: the values of `$ENV{NAME}`. within: the folder that has
    all included files; None if they may be anywhere.
    """

    def __init__(
        self, environ: Mapping[str, str], *, max_statements: int = MAX_STATEMENTS, within: Path | None = None
    ) -> None:
        self.top = Section("", None, "")
        self._within = within
        self._environ = environ
        self._octets, self._files = MAX_OCTETS, MAX_FILES
        self._statements = self._max_statements = max_statements
        self._including: list[tuple[int, int]] = []
        self._late: list[tuple[Section, Item]] = []

    def parse(self, path: Path) -> Section:
        """Parse a file, and return the section that contains all others.

        Raises ClientsFileError if the file cannot be read or is invalid. The message has the form `file:line: error`.
        """
        self.top.add("confdir", Item(os.fsencode(path.parent).decode("latin-1"), str(path)))
        self._file(path, self.top, str(path))
        for section, item in self._late:
            try:
                item.value = self._expanded(item.value, section, item.where)
            except _UnknownError as unknown:
                item.problem = str(unknown)
        return self.top

    def _file(self, path: Path, floor: Section, asked: str) -> None:
        """Read a file, and add its content to the section `floor`.

        asked: the position of the include as `file:line`, for error messages.
        """
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
        if self._is_outside(path):
            raise ClientsFileError(f"{asked}: the file is outside of the folder; name it with ${{confdir}}")
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):  # checked before open(), which would block on a pipe
                raise ClientsFileError(f"{asked}: {path} is not a file; to include a directory, end its name with /")
            with path.open("rb") as stream:
                octets = stream.read(self._octets + 1)
        except (OSError, ValueError) as error:
            raise ClientsFileError(f"{asked}: cannot read the file: {error}") from error
        self._octets -= len(octets)
        self._files -= 1
        identity = (status.st_dev, status.st_ino)
        self._check(identity, octets, f"{asked}: {path}")
        return identity, octets.decode("latin-1")

    def _is_outside(self, path: Path) -> bool:
        return self._within is not None and not path.resolve().is_relative_to(self._within.resolve())

    def _check(self, identity: tuple[int, int], octets: bytes, what: str) -> None:
        if self._octets < 0 or self._files < 0:
            raise ClientsFileError(
                f"{what} and its included files have more than {MAX_OCTETS} octets, or are more than {MAX_FILES} files"
            )
        if identity in self._including:
            raise ClientsFileError(f"{what} includes itself")
        if len(self._including) > MAX_INCLUDES:
            raise ClientsFileError(f"{what}: includes are nested more than {MAX_INCLUDES} files deep")
        if octets.startswith(b"\xef\xbb\xbf"):
            raise ClientsFileError(
                f"{what} begins with a byte order mark, which hides its first section from FreeRADIUS; remove it"
            )
        if b"\0" in octets:
            raise ClientsFileError(f"{what} contains a NUL octet; save it as text")

    def _statement(self, line: Line, here: Section, floor: Section) -> Section:
        """Read one item, section head, section end or directive. Return the section to which the next statement
        belongs."""
        self._statements -= 1
        if self._statements < 0:
            raise line.error(f"the file and its includes have more than {self._max_statements} statements")
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
        """Read $INCLUDE, $-INCLUDE or $TEMPLATE. As in FreeRADIUS, the rest of the line after the name is ignored."""
        word = line.pull_word()
        line.end()
        if not word:
            raise line.error(f"{name.upper()} must be followed by a name")
        if name != "$template":
            self._include(line, here, word, optional=name == "$-include")
            return
        if here.template is not None:
            raise line.error("the section already has a template")
        templates = self.top.first("templates")
        here.template = templates and templates.first(word)
        if here.template is None:
            raise line.error("no template of this name is defined above this line")

    def _include(self, line: Line, here: Section, word: str, *, optional: bool) -> None:
        """Read an included file. If the name ends with a slash, read the files of this directory.

        optional: whether a missing file is skipped. A missing directory is always an error.
        """
        try:
            target = os.fsdecode(self._expanded(word, here, line.where).encode("latin-1"))
        except _UnknownError as unknown:
            raise line.error(str(unknown)) from None
        # A path is relative to the including file. If it begins with a reference, it is relative to the working
        # directory.
        path = Path(target) if word.startswith("$") else Path(line.file).parent / target
        if target.endswith("/"):
            self._directory(path, here, line)
        elif not optional or _mode(path):
            self._file(path, here, line.where)

    def _directory(self, path: Path, here: Section, line: Line) -> None:
        """Read the files of a directory in the order of their names (FreeRADIUS reads them in directory order)."""
        if self._is_outside(path):
            raise line.error("the directory is outside of the folder; name it with ${confdir}")
        try:
            found = sorted(path.iterdir())
        except (OSError, ValueError) as error:
            raise line.error(f"cannot read the directory: {error}") from error
        for inner in found:
            mode = _mode(inner) if _INCLUDED.fullmatch(inner.name) else 0
            if mode and not S_ISDIR(mode):
                self._file(inner, here, line.where)

    def _item_or_section(self, line: Line, here: Section, name: str) -> Section:
        kind, text = line.pull_token(name=False)
        if kind == "end" or (kind == "operator" and text in "#,"):
            here.add(name, Item("", line.where))
            line.end()  # FreeRADIUS ignores the rest of the line after an item without a value, even after a comma
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
            raise line.error(f"sections are nested more than {MAX_SECTIONS} deep")
        try:
            return here.open(kind, label and self._expanded(label, here, line.where), line.where)
        except _UnknownError as unknown:
            raise line.error(str(unknown)) from None

    def _close(self, line: Line, here: Section, floor: Section) -> Section:
        if here is floor or here.parent is None:
            raise line.error("there is no open section for this }")
        if here.template is not None:
            here.items = here.template.items | here.items
        return here.parent

    def _expanded(self, text: str, here: Section, where: str) -> str:
        """Return the text with its references replaced by their values. If a value itself contains a reference, that
        reference is not replaced."""
        parts: list[str] = []
        at = size = 0
        for found in _REFERENCE.finditer(text):
            if not found["end"]:
                raise ClientsFileError(f"{where}: a reference is not closed")
            parts += text[at : found.start()], self._referred(found, here)
            size += len(parts[-1])
            if size > MAX_LINE:
                raise ClientsFileError(f"{where}: a value is longer than {MAX_LINE} characters")
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
            raise _UnknownError(f"the reference {found[0]!r} names an item that refers to a later line")
        return item.value


def _mode(path: Path) -> int:
    """Return the st_mode of a path, or 0 if the path cannot be read."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0

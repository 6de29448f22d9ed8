"""The folder: one TOML file for each kind of objects, and tenant.

`client.toml` has the RADIUS clients of the tenant that the command names, `2-1.client.toml` those of the tenant 1 of
the organization 2. The names are flat, because a ConfigMap of Kubernetes has no folders. Each object is a table of an
array:

    [[client]]
    name = "vpn"
    address = "192.0.2.1"
    secret = "file:secrets/vpn"
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from sallyport.areas.configuration.references import References
from sallyport.base.errors import StartError
from sallyport.base.spelling import Spellings
from sallyport.base.text import existing
from sallyport.base.wire import JSON, Row

SUFFIX: Final = ".toml"
MAX_FILE: Final = 16 << 20
_NAME: Final = re.compile(r"(?:(?P<org>[1-9][0-9]*)-(?P<tenant>[1-9][0-9]*)\.)?(?P<kind>[a-z_]+)")
Tenant = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of objects, as the service describes it (configuration.kinds)."""

    name: str
    key: str
    refers: str
    fields: Sequence[str]
    secrets: frozenset[str]
    texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, row: Row) -> "FileKind":
        """Return the kind that an answer describes."""
        fields, secrets, texts = (cast(list[str], row[name]) for name in ("fields", "secrets", "texts"))
        return cls(str(row["kind"]), str(row["key"]), str(row["refers"]), fields, frozenset(secrets), frozenset(texts))

    def name_of(self, fields: Mapping[str, object]) -> str:
        """Return the name of an object for messages."""
        own = str(fields.get(self.key, ""))
        return f"{fields.get('domain', '')}/{own}" if self.refers == "domain" else own


def read_folder(
    folder: Path, kinds: Sequence[FileKind], tenant: Tenant | None, references: References
) -> dict[Tenant, list[Row]]:
    """Return the objects of the files of a folder by tenant, in the form of configuration.apply.

    tenant: the tenant of the files without a number; None if there must be no such files. Raises StartError.
    """
    by_name = {kind.name: kind for kind in kinds}
    found = dict[Tenant, list[Row]]()
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
    except OSError as error:
        raise StartError(f"{folder}: {error.strerror}") from error
    for path in paths:
        match = _NAME.fullmatch(path.stem)
        kind = by_name.get(match["kind"]) if match else None
        if match is None or kind is None:
            raise StartError(f"{path}: no kind of objects has this name{existing(path.stem, by_name)}")
        own = (int(match["org"]), int(match["tenant"])) if match["org"] else tenant
        if own is None:
            raise StartError(f"{path}: the installation has several tenants: give --org and --tenant")
        found.setdefault(own, []).extend(_items(path, kind, references))
    return found


def _items(path: Path, kind: FileKind, references: References) -> Iterator[Row]:
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StartError(f"{path}: {error}") from error
    except RecursionError as error:
        raise StartError(f"{path}: is nested too deeply") from error
    except ValueError as error:  # of int(), which refuses very long numbers
        raise StartError(f"{path}: a number has too many digits") from error
    tables = document.pop(kind.name, [])
    lines = Lines(text, kind.name)
    if document or not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        wrong = next(iter(document), kind.name)
        raise StartError(f"{path.name}:{lines.of_key(wrong)}: {wrong}: only tables [[{kind.name}]] are allowed")
    for index, fields in enumerate(tables):
        for name in fields:
            if name not in kind.fields:
                near = Spellings(kind.fields).most_similar(name)
                meant = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(kind.fields)}"
                raise StartError(f"{path.name}:{lines.of_key(name, index)}: {name}: no such field{meant}")
        source = f"{path.name}:{lines.of_table(index)}"
        resolved = cast(Row, references.resolved(_plain(fields), kind.secrets, source, texts=kind.texts))
        yield {"kind": kind.name, "name": kind.name_of(fields), "fields": resolved, "source": source}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            octets = file.read(MAX_FILE + 1)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    if len(octets) > MAX_FILE:
        raise StartError(f"{path}: has more than {MAX_FILE >> 20} MiB")
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise StartError(f"{path}: octet {error.start + 1} is not UTF-8") from error


def _plain(value: object) -> JSON:
    """Return a value of TOML as JSON: times as text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | float | str) else str(value)


class Lines:
    """The line numbers of tables and keys in a file, for messages. Texts over several lines are left out."""

    def __init__(self, text: str, kind: str) -> None:
        header = re.compile(rf"\s*\[\[\s*[\"']?{re.escape(kind)}[\"']?\s*\]\]")
        self._lines = list[str]()
        self._tables = list[int]()
        within = ""
        for number, line in enumerate(text.splitlines()):
            self._lines.append("" if within else line)
            if not within and header.match(line):
                self._tables.append(number)
            for mark in re.findall(r'"""|\'\'\'', line):
                within = "" if within == mark else within or mark

    def of_table(self, index: int) -> int:
        """Return the line of a table, counted from 1."""
        return self._tables[index] + 1 if index < len(self._tables) else 1

    def of_key(self, name: str, index: int | None = None) -> int:
        """Return the line of a key, counted from 1; index: of the table that has it."""
        start = self.of_table(index) - 1 if index is not None else 0
        known = index is not None and index + 1 < len(self._tables)
        end = self._tables[cast(int, index) + 1] if known else len(self._lines)
        key = re.compile(rf"\s*\[*\s*(?:\w+\.)?[\"']?{re.escape(name)}[\"']?\s*[=.\]]")
        return next((number for number in range(start, end) if key.match(self._lines[number])), start) + 1

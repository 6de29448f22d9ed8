"""Write the files of an export. Files of people keep their comments and their order: only values that differ change."""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from sallyport.areas.configuration.files import FileKind
from sallyport.areas.configuration.item import KEEP
from sallyport.areas.configuration.references import References
from sallyport.base.errors import StartError
from sallyport.base.text import fold
from sallyport.base.wire import Row
from sallyport.host import disk

PUBLIC: Final = 0o644
"""The mode of a new file. It contains no secret."""


def text_of(kind: FileKind, objects: Sequence[Row], present: str, references: References) -> str:
    """Return the text of a file with these objects. present: the text of the file; empty if there is none. references:
    those of the folder. Raises StartError if it is not TOML with tables of the kind."""
    try:
        document = tomlkit.parse(present)
    except TOMLKitError as error:
        raise StartError(f"{kind.name}.toml: {error}") from error
    tables = document.setdefault(kind.name, tomlkit.aot())
    if not isinstance(tables, AoT):
        raise StartError(f"{kind.name}.toml: {kind.name} must be tables [[{kind.name}]]")
    left = {_key(kind, each): each for each in objects}
    for index in reversed(range(len(tables))):
        table = tables[index]
        wanted = left.pop(_key(kind, table), None)
        if wanted is None:
            del tables[index]
        else:
            _change(table, wanted, kind, references)
    for each in objects:
        if left.pop(_key(kind, each), None) is not None:
            tables.append(_table(each))
    return tomlkit.dumps(document) if tables else ""


def write_file(path: Path, kind: FileKind, objects: Sequence[Row], references: References) -> bool:
    """Write the file of a kind, and return whether it has changed. Without objects, a file that is missing stays
    missing. A file that exists keeps its owner and its mode. Raises StartError, ConfigError, OSError."""
    present = path if path.exists() else None
    before = present.read_text() if present else ""
    after = text_of(kind, objects, before, references)
    if after == before or (not after and not before):
        return False
    mode = stat.S_IMODE(present.stat().st_mode) if present else PUBLIC
    disk.write(path, after.encode(), mode=mode, like=present)
    return True


def _key(kind: FileKind, fields: Mapping[str, object]) -> str:
    return fold(kind.name_of(fields))


def _table(fields: Mapping[str, object]) -> Table:
    table = tomlkit.table()
    for name, value in fields.items():
        table.add(name, _value(value))
    return table


def _value(value: object) -> Any:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        tables = tomlkit.aot()
        for each in value:
            tables.append(_table(each))
        return tables
    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value, multiline=True)
    return _table(cast(Row, value)) if isinstance(value, dict) else value


def _change(table: Mapping[str, object], wanted: Mapping[str, object], kind: FileKind, references: References) -> None:
    """Give a table of a file other values. A reference to a secret stays, and one to a file with the same text."""
    changing = cast("dict[str, object]", table)
    for name in [name for name in table if name not in wanted]:
        del changing[name]
    for name, value in wanted.items():
        present = table.get(name)
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            _change(present, value, kind, references)
        elif name in kind.secrets and value == KEEP and present:
            continue
        elif present != value and not (name in kind.texts and _refers_to(present, value, references)):
            changing[name] = _value(value)


def _refers_to(present: object, value: object, references: References) -> bool:
    """Return whether a value of a file is a reference to a file with a text, apart from blanks."""
    try:
        return isinstance(present, str) and references.text(present, "").split() == str(value).split()
    except StartError:
        return False

"""What a folder of FreeRADIUS has beside clients, huntgroups, users and MAC addresses: unlang, modules, realms. Nothing
of it can be expressed, so each part is a finding with its file and line. The findings show no values, because
conditions and modules may have passwords in them.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from sallyport.areas.migration.translation import Finding, Weight

MAX_OCTETS: Final = 1 << 20
MAX_PARTS: Final = 200
"""Maximum number of findings of one file."""
_UNLANG: Final = re.compile(
    r"\s*\}?\s*(if|elsif|else|switch|case|update|foreach|map|load-balance|redundant|parallel|reject|fail|userlock)\b"
)
_REALM: Final = re.compile(r"\s*(realm|home_server|home_server_pool)\s+([^\s{]+)")
_MODULE: Final = re.compile(r"([A-Za-z][\w-]*)(?:\s+([\w.-]+))?\s*\{")
_NOTHING: Final = re.compile(r"(?!)")
_PLACES: Final = (
    ("sites-enabled", _UNLANG, "unlang `{}` cannot be expressed: write a login rule"),
    ("mods-enabled", _MODULE, "the module {} cannot be expressed"),
    ("mods-config/files", _NOTHING, ""),
    ("mods-config/preprocess", _NOTHING, ""),
    ("proxy.conf", _REALM, "the {} is not imported: add a domain with the realm, and set its first factor"),
)
"""The files that are listed, what starts a part of them, and the text of a finding. A file without such a part has one
finding. Other folders of modules have one finding each, because most of their files are of FreeRADIUS itself."""


def rest_of(folder: Path, read: Collection[Path]) -> Iterator[Finding]:
    """Yield the findings of a folder of FreeRADIUS. read: the files that other readers have read. Raises OSError."""
    done = {each.resolve() for each in read}
    for place, start, text in _PLACES:
        top = folder / place
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and path.resolve() not in done and path.name != "README.rst":
                yield from _of_file(folder, path, start, text)
    listed = {place for place, _, _ in _PLACES}
    for top in (folder / "policy.d", *sorted((folder / "mods-config").glob("*"))):
        name = str(top.relative_to(folder))
        count = sum(each.is_file() for each in top.rglob("*")) if name not in listed else 0
        if count:
            yield Finding(Weight.LEFT_OUT, name, name, f"its files cannot be expressed ({count})")


def _of_file(folder: Path, path: Path, start: re.Pattern[str], text: str) -> Iterator[Finding]:
    name = str(path.relative_to(folder))
    if not path.resolve().is_relative_to(folder.resolve()) or path.stat().st_size > MAX_OCTETS:
        yield Finding(Weight.LEFT_OUT, name, name, "the file is outside of the folder, or too large, and is not read")
        return
    active, parts = 0, 0
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        active = active or number
        if (found := start.match(line)) is not None:
            parts += 1
            if parts <= MAX_PARTS:
                what = " ".join(each for each in found.groups() if each)
                yield Finding(Weight.LEFT_OUT, what, f"{name}:{number}", text.format(what))
    if parts > MAX_PARTS:
        yield Finding(Weight.LEFT_OUT, name, name, f"{parts - MAX_PARTS} more parts cannot be expressed")
    elif active and not parts:
        yield Finding(Weight.LEFT_OUT, name, f"{name}:{active}", "the file cannot be expressed")

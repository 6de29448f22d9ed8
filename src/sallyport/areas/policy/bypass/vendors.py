"""The vendors of MAC addresses, by the registries of the IEEE.

The registries have 4 MiB, change daily, and do not belong to this program. So an admin downloads their CSV files, and
`sallyport bypass vendors` makes one compact file of them: a line `PREFIX NAME` for each assignment, sorted. The service
reads the file when a list first needs it, and again after it has changed. Without the file, all vendors are empty.
"""

import csv
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sallyport.base.mac import is_random
from sallyport.base.text import trimmed

FILE: Final = "vendors.txt"
"""The name of the compact file in the data directory."""
LENGTHS: Final = (9, 7, 6)
"""The numbers of hex digits in assignments, the longest first (MA-S, MA-M, MA-L)."""
MAX_OCTETS: Final = 16 << 20
MAX_NAME_LENGTH: Final = 64
_PREFIX, _NAME = "Assignment", "Organization Name"


def compact(files: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of the compact file. files: the lines of CSV files of the IEEE. Raises ValueError if one is no
    such file."""
    found: dict[str, str] = {}
    for file in files:
        reader = csv.DictReader(file)
        if not {_PREFIX, _NAME} <= set(reader.fieldnames or ()):
            raise ValueError(f"the first line must have the columns {_PREFIX} and {_NAME}, as in oui.csv of the IEEE")
        for row in reader:
            prefix, name = (row[_PREFIX] or "").strip().lower(), " ".join((row[_NAME] or "").split())
            if len(prefix) in LENGTHS and name and not set(prefix) - set("0123456789abcdef"):
                found[prefix] = name[:MAX_NAME_LENGTH]
    return [f"{prefix} {name}" for prefix, name in sorted(found.items())]


class Vendors:
    """The vendors in the compact file of a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        self._read: tuple[int, int] | None = None
        self._lines: list[str] = []

    def load(self) -> None:
        """Read the file, if it has changed. Call it in a thread. A file that cannot be read is an empty one."""
        try:
            status = self._path.stat()
            read = status.st_mtime_ns, status.st_size
            if read != self._read and status.st_size <= MAX_OCTETS:
                lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
                self._lines, self._read = sorted(lines), read
        except OSError:
            self._lines, self._read = [], None

    def of(self, key: str) -> str:
        """Return the vendor of a MAC address, or an empty text if it is unknown. key: the address as 12 hex digits."""
        if is_random(key):
            return ""
        for length in LENGTHS:
            prefix = f"{key[:length]} "
            at = bisect_right(self._lines, prefix)
            if at < len(self._lines) and self._lines[at].startswith(prefix):
                return trimmed(self._lines[at][length:])
        return ""

"""A folder with one file for a reader, and a watch that finds any access outside of the folder.

Beside the folder is a canary, which the file reaches as `../canary` and, through a symbolic link, as `link`.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_EVENTS: Final = ("open", "os.listdir", "os.scandir")
_PROGRAM: Final = tuple(
    os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, "/usr/share/zoneinfo", Path(__file__).parents[2])
)
"""Folders of the program itself: an import in the reader opens files there."""
_DISK: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


class OutsideError(Exception):
    """The error for a reader that has opened a path outside of its folder."""


class _Watch:
    """The folder to which this process is limited. outside: the first path outside of it that was opened."""

    def __init__(self) -> None:
        self._folder = ""
        self._is_hooked = False
        self.outside = ""

    @contextlib.contextmanager
    def on(self, folder: Path) -> Iterator[None]:
        """Watch until the block ends. Raises OutsideError, even if the reader has suppressed it."""
        if not self._is_hooked:
            sys.addaudithook(self._look)
            self._is_hooked = True
        self._folder, self.outside = os.path.realpath(folder), ""
        try:
            yield
        finally:
            self._folder = ""
        if self.outside:
            raise OutsideError(self.outside)

    def _look(self, event: str, details: tuple[object, ...]) -> None:
        if not self._folder or event not in _EVENTS or not isinstance(details[0], str | bytes | os.PathLike):
            return
        path = os.path.realpath(os.fsdecode(details[0]))
        if not any(path == each or path.startswith(f"{each}/") for each in (self._folder, *_PROGRAM)):
            self.outside = self.outside or path
            raise OutsideError(path)


_WATCH: Final = _Watch()


@contextlib.contextmanager
def only_file(octets: bytes, name: str) -> Iterator[Path]:
    """Yield the path of a file with these octets. Raises OutsideError if a path outside of its folder is opened."""
    with tempfile.TemporaryDirectory(dir=_DISK) as outer:
        folder = Path(outer, "own")
        folder.mkdir()
        (folder / name).write_bytes(octets)
        (folder / "link").symlink_to("../canary")
        Path(outer, "canary").write_text("secret")
        with _WATCH.on(folder):
            yield folder / name

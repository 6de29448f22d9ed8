"""A small disk: a file system in its own mount namespace, so that the mounts of the machine do not change.

A process that does nothing holds the namespace open. The service is started in the namespace, and can be started there
again. The test accesses the disk from outside through /proc. When the process ends, the file system is removed.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.running_service import RunningService

PIECES = (1 << 20, 1 << 16, 1 << 12)
READ = """
import json, sqlite3, sys
path, sql, *parameters = sys.argv[1:]
print(json.dumps(sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(sql, parameters).fetchall()))
"""
MOUNT = 'mount -t tmpfs -o "size=$1m" none "$2" && echo mounted && exec cat'


class ServiceOnDisk(RunningService):
    """A service whose store is opened only inside the namespace, because SQLite does not open files below /proc."""

    def __init__(self, disk: "SmallDisk", directory: Path, settings: Mapping[str, str]) -> None:
        self._inside = disk.inside / "data"
        self._enter = ["nsenter", f"--mount=/proc/{disk.holder}/ns/mnt", "--"]
        super().__init__(directory, {**settings, "SALLYPORT_DATA_DIR": str(self._inside)}, wrapper=self._enter)
        self.data_dir = disk.outside / "data"

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        command = [*self._enter, sys.executable, "-c", READ, str(self._inside / "sallyport.db"), sql]
        done = subprocess.run([*command, *map(str, parameters)], capture_output=True, timeout=30, check=True)
        return [tuple(row) for row in json.loads(done.stdout)]


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs.

    inside: its path for processes in its namespace. outside: its path for the test.
    """

    holder: int
    inside: Path

    @property
    def outside(self) -> Path:
        """The path of the disk for the test, which is outside the namespace."""
        return Path(f"/proc/{self.holder}/root{self.inside}")

    @property
    def _ballast(self) -> Path:
        return self.outside / "ballast"

    def fill(self, left: int = 0) -> None:
        """Fill the disk except for `left` octets."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in PIECES:
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    assert error.errno == errno.ENOSPC
            ballast.truncate(ballast.tell() - left)

    def clear(self) -> None:
        """Free the space that `fill` has taken."""
        self._ballast.unlink()

    def free(self) -> int:
        """Return the number of free octets."""
        disk = os.statvfs(self.outside)
        return disk.f_bavail * disk.f_frsize


@contextmanager
def small_disk(directory: Path, mib: int) -> Iterator[SmallDisk]:
    """Yield a disk of `mib` MiB on an empty directory until the block ends."""
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh", str(mib), str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mounted\n"
        yield SmallDisk(holder.pid, directory)


@cache
def _permitted() -> bool:
    try:
        tried = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=10, check=False
        )
    except FileNotFoundError:
        return False
    return tried.returncode == 0


needs_mounts = pytest.mark.skipif(not _permitted(), reason="unshare is not installed, or may not mount here")

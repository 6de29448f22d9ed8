"""The disk of the nodes: a tmpfs whose size is changed, so that it is full at once, however large it is."""

import os
import subprocess
from contextlib import suppress
from typing import Final

from tests.torture.disk import SmallDisk

DISK_MIB: Final = 6144
"""Its size. It takes memory only for what is written: the store of an installation, and three backups."""
TRIES: Final = 50


class MountedDisk(SmallDisk):
    """A tmpfs whose size may be changed."""

    def fill(self, left: int = 0) -> None:
        """Make the disk as small as what it holds, and `left` octets."""
        for _ in range(TRIES):
            with suppress(subprocess.CalledProcessError):  # what it holds has grown meanwhile
                self._resize(f"{self._used() + left}")
                return

    def clear(self) -> None:
        """Give the disk its size again."""
        self._resize(f"{DISK_MIB}m")

    def _used(self) -> int:
        disk = os.statvfs(self.outside)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def _resize(self, size: str) -> None:
        command = ["nsenter", f"--mount=/proc/{self.holder}/ns/mnt", "--", "mount", "-o", f"remount,size={size}"]
        subprocess.run([*command, "none", str(self.inside)], check=True, capture_output=True, timeout=30)

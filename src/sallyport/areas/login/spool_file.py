"""The file of spooled records: a header with a random name, then a frame for each record.

A frame has four parts: the length of its payload, a checksum, the sequence number, and the payload. The checksum is the
CRC-32 over the sequence number and the payload. A frame that is incomplete after a crash is ignored, because no answer
was sent for it. A new file has a new name, so a sequence number is never used twice with the same name.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from struct import Struct
from typing import Final
from zlib import crc32

from sallyport.host import disk

_MAGIC: Final = b"sallyport spool 1\n"
_NAME: Final = 16
_BEGIN: Final = len(_MAGIC) + _NAME
_FRAME: Final = Struct("!IIQ")
_LONGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Frame:
    """A record in the file. end: the offset behind the record's frame, in octets."""

    sequence: int
    payload: bytes
    end: int


def paths_of(directory: Path, worker: str, workers: int) -> tuple[Path, list[Path]]:
    """Return the path of a worker's file, and the paths of left files, whose workers do not run any more. Only the
    first worker gets left files.

    worker: the number of the worker, or empty if there is only one process. workers: the number of workers that run.
    """
    own = directory / f"accounting{worker and '-'}{worker}.spool"
    running = {own, *(directory / f"accounting-{each}.spool" for each in range(1, workers + 1) if worker)}
    return own, sorted({*directory.glob("accounting*.spool")} - running) if worker in {"", "1"} else []


class SpoolFile:
    """The file of spooled records. It does not exist while there are no records. Only one thread may use it at a time.

    name: the random name in the header. records: the number of records that were not removed. size: the size of the
    file, in octets.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = ""
        self.records = 0
        self.size = 0
        self._taken = _BEGIN
        self._sequence = 0

    def open(self) -> None:
        """Find the records that an earlier process has left. If the last frame is incomplete, cut it off. Raises
        OSError."""
        if not self._path.exists():
            return
        octets = self._path.read_bytes()
        if octets[: len(_MAGIC)] != _MAGIC or len(octets) < _BEGIN:
            self._path.unlink()  # the process crashed before the first frame was written
            return
        self.name = octets[len(_MAGIC) : _BEGIN].hex()
        self._taken = self.size = _BEGIN
        for frame in _frames(octets, _BEGIN):
            self.records += 1
            self.size, self._sequence = frame.end, frame.sequence
        if self.size < len(octets):
            os.truncate(self._path, self.size)
        if not self.records:
            self._delete()

    def append(self, payloads: Sequence[bytes]) -> None:
        """Write records to the disk, and wait until they are there. If it raises OSError, none of them was added."""
        is_new = not self.size
        head = _MAGIC + token_bytes(_NAME) if is_new else b""
        sequences = range(self._sequence + 1, self._sequence + 1 + len(payloads))
        octets = head + b"".join(map(_framed, sequences, payloads))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, disk.PRIVATE)
        try:
            try:
                os.ftruncate(descriptor, self.size)  # without the incomplete rest of a failed write
                _write_at(descriptor, octets, self.size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                disk.sync(self._path.parent)
        except OSError:
            os.truncate(self._path, self.size)
            raise
        if is_new:
            self.name = head[len(_MAGIC) :].hex()
        self._sequence += len(payloads)
        self.size += len(octets)
        self.records += len(payloads)

    def read(self, most: int) -> list[Frame]:
        """Return the next records, at most `most`. Raises OSError."""
        found: list[Frame] = []
        with self._path.open("rb") as file:
            file.seek(self._taken)
            octets = file.read(min(most * _LONGEST, self.size - self._taken))
        for frame in _frames(octets, 0):
            found.append(Frame(frame.sequence, frame.payload, self._taken + frame.end))
            if len(found) == most:
                break
        return found

    def remove(self, frames: Sequence[Frame]) -> bool:
        """Remove records that `read` has returned. Return whether the spool is empty now. Raises OSError."""
        self._taken = frames[-1].end
        self.records -= len(frames)
        if self._taken < self.size:
            return False
        self._delete()
        return True

    def _delete(self) -> None:
        self._path.unlink()
        disk.sync(self._path.parent)
        self.name, self.size, self._taken, self._sequence = "", 0, _BEGIN, 0


def _framed(sequence: int, payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), crc32(payload, sequence & 0xFFFFFFFF), sequence) + payload


def _frames(octets: bytes, at: int) -> "Sequence[Frame]":
    """Return all complete frames from the offset `at` on."""
    found: list[Frame] = []
    while at + _FRAME.size <= len(octets):
        length, check, sequence = _FRAME.unpack_from(octets, at)
        end = at + _FRAME.size + length
        payload = octets[at + _FRAME.size : end]
        if end > len(octets) or check != crc32(payload, sequence & 0xFFFFFFFF):
            break
        found.append(Frame(sequence, payload, end))
        at = end
    return found


def _write_at(descriptor: int, octets: bytes, offset: int) -> None:
    left = memoryview(octets)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written

"""The status line below each page: version, node, time of the service, and time of the last backup."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.errors import StoreError

KEPT_US: Final = 60 * SECOND
"""Time for which the time of the last backup is cached, in microseconds."""
LastBackup = Callable[[], Awaitable[int | None]]


@dataclass(frozen=True, slots=True)
class Status:
    """The values of the line. now: the time of the service. backup: the time of the last backup; an empty text if there
    is none, and None if the store cannot be read."""

    version: str
    node: str
    now: str
    backup: str | None


class StatusLine:
    """The reader of the status. last_backup: returns the time of the last backup in microseconds, or None without a
    backup. Each process reads it at most once a minute."""

    def __init__(self, version: str, node: str, last_backup: LastBackup, clock: Clock) -> None:
        self._version = version
        self._node = node
        self._last_backup = last_backup
        self._clock = clock
        self._backup: str | None = None
        self._read_at: int | None = None
        self._reading = trio.Lock()

    async def read(self) -> Status:
        """Return the present status."""
        async with self._reading:
            now = self._clock()
            if self._read_at is None or not 0 <= now - self._read_at < KEPT_US:
                self._backup, self._read_at = await self._found(), now
        return Status(self._version, self._node, iso(now), self._backup)

    async def _found(self) -> str | None:
        try:
            at = await self._last_backup()
        except StoreError:
            return None
        return iso(at) if at else ""

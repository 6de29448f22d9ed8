"""The watchdog of systemd, and the free space of the disk.

The service notifies systemd's watchdog each time a test write to the store ends, with or without an error. This shows
that both the event loop and the writer run. If the disk is full, the watchdog is still notified, because a restart
frees no space. If the writer hangs, the watchdog is not notified, and systemd restarts the service.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog
import trio

from sallyport.base.errors import StoreError
from sallyport.host.notify import Notifier
from sallyport.store.model import Store

LOOK_S: Final = 60.0
"""Seconds between two checks of the free disk space."""
MORE: Final = 1.25
"""The shortage ends only when the free space exceeds the limit by this factor. Otherwise free space that varies near
the limit would be logged again and again."""

log = structlog.get_logger()


async def feed_watchdog(store: Store, notifier: Notifier) -> None:
    """Notify the watchdog three times in each interval, until cancelled."""
    if notifier.watchdog_s is None:
        return
    while True:
        try:
            await store.write(lambda tx: None)
        except StoreError as error:
            log.warning("watchdog_write_failed", error=str(error))
        notifier.alive()
        await trio.sleep(notifier.watchdog_s / 3)


def free_octets(directory: Path) -> int | None:
    """Return the free octets of a directory's file system, or None if they are not known."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


async def watch_room(
    directory: Path, least: Callable[[], int], free: Callable[[Path], int | None] = free_octets
) -> None:
    """Log a warning when fewer than `least` octets are left for the database. Run until cancelled.

    The warning comes long before writes fail. It is logged again only after there was enough space in between. least: a
    function that returns a size in octets; 0 turns the warning off. free: a function that returns the free octets of a
    directory's file system.
    """
    is_short = False
    while True:
        limit, was_short = least(), is_short
        left = free(directory) if limit else None
        if left is not None:
            is_short = left < limit * (MORE if was_short else 1)
            figures = {"directory": str(directory), "left_mib": left >> 20, "disk_warning_mib": limit >> 20}
            if is_short and not was_short:
                log.warning("disk_space_low", **figures)
            elif was_short and not is_short:
                log.info("disk_space_recovered", **figures)
        await trio.sleep(LOOK_S)

"""Reports to systemd, and the reload of the settings on SIGHUP.

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

from sallyport.base import log as logs
from sallyport.base.errors import SallyportError, StoreError
from sallyport.host.notify import Notifier
from sallyport.service.app import App
from sallyport.settings.settings import Settings
from sallyport.store.model import Store

LOOK_S: Final = 60.0
"""Seconds between two checks of the free disk space."""
MORE: Final = 1.25
"""The shortage ends only when the free space exceeds the limit by this factor. Otherwise free space that varies near
the limit would be logged again and again."""
AT_ONCE = frozenset({"log_level", "log_identities", "identity_providers"})
"""Settings that a reload applies without a restart."""

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


async def watch_room(directory: Path, least: int, free: Callable[[Path], int | None] = free_octets) -> None:
    """Log a warning when less than `least` octets are left for the database. Run until cancelled.

    The warning comes long before writes fail. It is logged again only after there was enough space in between. least: a
    size in octets; 0 turns the warning off. free: a function that returns the free octets of a directory's file system.
    """
    is_short = False
    while least:
        left, was_short = free(directory), is_short
        if left is not None:
            is_short = left < least * (MORE if was_short else 1)
            figures = {"directory": str(directory), "left_mib": left >> 20, "disk_warning_mib": least >> 20}
            if is_short and not was_short:
                log.warning("disk_space_low", **figures)
            elif was_short and not is_short:
                log.info("disk_space_recovered", **figures)
        await trio.sleep(LOOK_S)


async def reload(app: App, read: Callable[[], Settings]) -> list[str]:
    """Reload settings, certificates and the store's configuration. Return the changed settings that need a restart.

    ConfigError: a setting or a certificate cannot be used. Raises StoreError. After an error, the previous settings and
    certificates stay in force.
    """
    settings = read()
    await app.parts.configuration.reload()
    if app.tls is not None:
        app.tls.reload()
    app.apply(settings)
    app.installation.metrics.loaded()
    changed = [
        name for name in Settings.model_fields if getattr(settings, name) != getattr(app.parts.settings, name)
    ]  # compared with the settings at the start
    return [name for name in changed if name not in AT_ONCE]


async def reload_and_tell(app: App, notifier: Notifier, read: Callable[[], Settings], status: str) -> None:
    """Run `reload` and log its result. Errors are logged, not raised."""
    notifier.reloading()
    try:
        waiting = await reload(app, read)
        log.info("settings_reloaded", log_level=logs.level(), need_a_restart=waiting)
    except SallyportError as error:
        log.error("settings_not_reloaded", error=str(error))  # noqa: TRY400
    notifier.ready(status)

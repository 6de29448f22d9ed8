"""The steps of `sallyport server uninstall`. Each step can be repeated, so a second attempt completes an interrupted
one."""

import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sallyport.base.errors import ConfigError
from sallyport.deploy import account, units
from sallyport.deploy.install import has_package, old
from sallyport.host import systemd
from sallyport.host.systemd import BACKUP_UNIT, CONFIG_DIR, CONFIG_FILE, DATA_DIR, SOCKET, UNIT, UNITS, USER
from sallyport.settings.settings import load


def check(program: Path) -> None:
    """Check that this command may uninstall the service. Raises ConfigError if the units belong to a package. Raises
    ConfigError also if a process uses the data, but systemd is not running and so cannot stop this process."""
    if has_package(program):
        raise ConfigError(
            "a package has installed the service: remove the package, for example with apt remove sallyport-radius"
        )
    if not systemd.is_booted() and is_in_use(data_directory()):
        raise ConfigError(f"a service uses {data_directory()}, but systemd does not manage it: stop the service first")


def remove_units(report: Callable[[str], None]) -> None:
    """Stop the service and remove its units. Raises ConfigError."""
    there = [name for name in UNITS if (systemd.ADMIN_UNITS / name).exists()]
    if there and systemd.is_booted():
        systemd.systemctl("disable", "--now", *there)
        report(f"{UNIT} was stopped")
    for path in units.unit_paths():
        for each in (path, old(path)):
            _remove(each, report)
    for name in (UNIT, BACKUP_UNIT, SOCKET):
        path = units.drop_in_path(name)
        _remove(path, report)
        with suppress(OSError):  # it is kept if an admin has other drop-ins in it
            path.parent.rmdir()
    for name in there:  # without systemd, the links that `systemctl enable` has made remain
        for wants in systemd.ADMIN_UNITS.glob("*.wants"):
            (wants / name).unlink(missing_ok=True)
    if there and systemd.is_booted():
        systemd.systemctl("daemon-reload")
    if not there:
        report("no unit is installed")


def purge(report: Callable[[str], None]) -> None:
    """Delete the data, the settings and the user. Raises ConfigError if a process still uses the data, or if a step
    failed."""
    data = data_directory()
    if is_in_use(data):
        raise ConfigError(f"a process still uses {data}: nothing was deleted; stop it first")
    try:
        if DATA_DIR.exists():
            shutil.rmtree(DATA_DIR.resolve())
            DATA_DIR.unlink(missing_ok=True)  # DATA_DIR may be a link to another disk
            report(f"{DATA_DIR} was deleted")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    _remove(CONFIG_FILE, report)
    with suppress(OSError):  # it is kept if an agent has a file in it
        CONFIG_DIR.rmdir()
    if account.delete():
        report(f"user {USER} was deleted")
    if data.exists():
        report(f"{data} was kept, because it is not the standard data directory: delete it yourself")


def data_directory() -> Path:
    """Return the data directory in the settings. If the settings cannot be read, return the standard directory."""
    with suppress(ConfigError):
        if CONFIG_FILE.exists():
            return load(CONFIG_FILE, {}).below(DATA_DIR).data_dir
    return DATA_DIR


def is_in_use(directory: Path) -> bool:
    """Return whether a process holds the lock of a data directory."""
    try:
        descriptor = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _remove(path: Path, report: Callable[[str], None]) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    report(f"{path} was removed")

"""The installation on a host: paths and names of the system service, and functions for systemd units.

`sallyport server install` creates these users, directories and units. The Debian package uses the same names, and every
command finds the system service by these names. The agents install their units with these functions. Every command
imports this module, so it uses only the standard library.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from sallyport.base import disk
from sallyport.base.errors import ConfigError

USER: Final = "sallyport"
"""The service's user, and its group."""
CONFIG_DIR: Final = Path("/etc/sallyport")
CONFIG_FILE: Final = CONFIG_DIR / "sallyport.toml"
"""Settings of the system service. Owner root, group USER, mode 0640. It sets `data_dir`."""
DATA_DIR: Final = Path("/var/lib/sallyport")
"""`data_dir` of the system service. Owner USER, mode 0700. Relative paths in its settings start here."""
UNIT: Final = "sallyport.service"
BACKUP_UNIT: Final = "sallyport-backup.service"
BACKUP_TIMER: Final = "sallyport-backup.timer"
UNITS: Final = (UNIT, BACKUP_UNIT, BACKUP_TIMER)
ADMIN_UNITS: Final = Path("/etc/systemd/system")
"""Directory of an admin's units. They take precedence over the units of a package."""
PACKAGE_UNITS: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED: Final = Path("/run/systemd/system")
_TIMEOUT_S: Final = 180


def program() -> Path:
    """Return the path of this program, for a unit."""
    found = shutil.which(sys.argv[0])
    return Path(found if found is not None else sys.argv[0]).absolute()


def is_booted() -> bool:
    """Return whether systemd manages this machine (sd_booted(3))."""
    return _BOOTED.is_dir()


def write_unit(path: Path, text: str) -> None:
    """Write a unit file or a drop-in. ConfigError: it could not be written; the former file is unchanged."""
    make_directory(path.parent, 0o755)
    disk.write(path, text.encode(), mode=0o644)


def make_directory(directory: Path, mode: int) -> None:
    """Create a directory if it does not exist. The mode does not depend on the umask. Raises ConfigError."""
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(mode)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from None


def systemctl(*arguments: str) -> None:
    """Run systemctl. ConfigError: systemctl failed; the error contains its message."""
    done = _run(*arguments)
    if done.returncode != 0:
        raise ConfigError(f"systemctl {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")


def is_active(unit: str) -> bool:
    """Return whether a unit runs. Raises ConfigError."""
    return _run("is-active", "--quiet", unit).returncode == 0


def _run(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603  an argument list of our own words
            ["systemctl", *arguments],  # noqa: S607
            env={"PATH": PATH, "LC_ALL": "C", **_bus()},
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise ConfigError("systemctl: not there, or it does not answer") from None


def _bus() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "DBUS_SYSTEM_BUS_ADDRESS"}

"""The installation on a host: paths and names of the system service, and functions for systemd units.

This module names the user, directories and units that `sallyport server install` creates. The Debian package uses the
same names. Every command uses these names to find the system service. The agents install their units with the functions
of this module. Every command imports this module, so it uses only the standard library.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from sallyport.base.errors import ConfigError
from sallyport.host import disk

USER: Final = "sallyport"
"""The name of the service's user, and the name of the user's group."""
CONFIG_DIR: Final = Path("/etc/sallyport")
CONFIG_FILE: Final = CONFIG_DIR / "sallyport.toml"
"""The settings file of the system service. Owner root, group USER, mode 0640. It sets `data_dir`."""
CREDENTIALS_DIR: Final = CONFIG_DIR / "credentials"
"""The directory with the files that the unit passes to the service as credentials. Only root can read it."""
DATA_DIR: Final = Path("/var/lib/sallyport")
"""The data directory of the system service. Owner USER, mode 0700. Relative paths in its settings start here."""
AGENT_PROGRAM: Final = "sallyport-agent"
"""The program of a host that has the agents alone."""
UNIT: Final = "sallyport.service"
BACKUP_UNIT: Final = "sallyport-backup.service"
BACKUP_TIMER: Final = "sallyport-backup.timer"
SOCKET: Final = "sallyport.socket"
"""The unit of the sockets that systemd keeps open while the service restarts. An admin enables it."""
UNITS: Final = (UNIT, SOCKET, BACKUP_UNIT, BACKUP_TIMER)
ADMIN_UNITS: Final = Path("/etc/systemd/system")
"""The directory for units of the administrator. They override the units of a package."""
PACKAGE_UNITS: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED: Final = Path("/run/systemd/system")
_TIMEOUT_S: Final = 180


def program() -> Path:
    """Return the path of this program, for the ExecStart line of a unit."""
    found = shutil.which(sys.argv[0])
    return Path(found if found is not None else sys.argv[0]).absolute()


def is_booted() -> bool:
    """Return whether systemd manages this machine (sd_booted(3))."""
    return _BOOTED.is_dir()


def write_unit(path: Path, text: str) -> None:
    """Write a unit file or a drop-in. Raises ConfigError if that fails; the old file is then unchanged."""
    make_directory(path.parent, 0o755)
    disk.write(path, text.encode(), mode=0o644)


def make_directory(directory: Path, mode: int) -> None:
    """Create a directory if it does not exist. The umask does not change the mode. Raises ConfigError."""
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(mode)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from None


def systemctl(*arguments: str) -> None:
    """Run systemctl. Raises ConfigError with the message of systemctl if it fails."""
    done = _run(*arguments)
    if done.returncode != 0:
        raise ConfigError(f"systemctl {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")


def is_active(unit: str) -> bool:
    """Return whether a unit is active. Raises ConfigError."""
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
        raise ConfigError("systemctl is missing or does not answer") from None


def _bus() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "DBUS_SYSTEM_BUS_ADDRESS"}

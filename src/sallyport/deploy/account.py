"""Creates and deletes the service's user, and checks that this user can run and read the necessary files."""

import grp
import os
import pwd
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sallyport
from sallyport.base.errors import ConfigError
from sallyport.deploy.units import HIDDEN
from sallyport.host.systemd import DATA_DIR, PATH, USER

_NOBODY: Final = 65_534
_FIRST_PERSON: Final = 1000
_TIMEOUT_S: Final = 120
_FIND: Final = 'for path; do test -x "$path" || { echo "$path"; exit; }; done'


@dataclass(frozen=True, slots=True)
class Account:
    """The uid of a user, and the gids of the user's groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    def run(
        self, *command: str, environ: Mapping[str, str] | None = None, directory: Path = Path("/")
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program as this user in a directory, with a small environment. Raises OSError, TimeoutExpired."""
        return subprocess.run(  # noqa: S603  the words of our own commands
            command,
            cwd=directory,
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", **(environ or {})},
            user=self.uid,
            group=self.gid,
            extra_groups=self.groups,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )

    def unreachable(self, paths: Iterable[Path]) -> str:
        """Return the first directory or program on the way to these paths that this user cannot enter or run. Return an
        empty text if the user can reach all paths."""
        steps = dict.fromkeys(str(step) for path in paths for step in (*reversed(path.parents), path))
        return self.run("/bin/sh", "-c", _FIND, "sh", *steps).stdout.strip()

    def can_read(self, path: Path) -> bool:
        """Return whether this user can read a file or a directory."""
        return self.run("/usr/bin/test", "-r", str(path)).returncode == 0


ANYONE: Final = Account(_NOBODY, _NOBODY)
"""A user without privileges. It is used for checks before the service's user exists."""


def find() -> Account | None:
    """Return the service's user, or None if the user does not exist."""
    try:
        found = pwd.getpwnam(USER)
    except KeyError:
        return None
    return Account(found.pw_uid, found.pw_gid, tuple(os.getgrouplist(USER, found.pw_gid)))


def make() -> Account:
    """Create the service's user. Raises ConfigError if the user could not be created."""
    has_group = any(group.gr_name == USER for group in grp.getgrall())
    group = ("--gid", USER) if has_group else ("--user-group",)
    options = ("--system", "--home-dir", str(DATA_DIR), "--no-create-home", "--shell", "/usr/sbin/nologin")
    _change("useradd", *group, *options, "--comment", "Sallyport service", USER)
    account = find()
    if account is None:
        raise ConfigError(f"useradd: the user {USER} was not created")
    return account


def delete() -> bool:
    """Delete the service's user. Return False if the user does not exist. Return False also if `make` has not created
    the user: such a user is kept. Raises ConfigError."""
    try:
        found = pwd.getpwnam(USER)
    except KeyError:
        return False
    if found.pw_uid >= _FIRST_PERSON or found.pw_dir != str(DATA_DIR):
        return False
    _change("userdel", USER)
    return True


def check_program(program: Path, account: Account) -> None:
    """Check that the service's user can run this program. Raises ConfigError if the user cannot run the program. The
    error message names the path that the user cannot reach, and the remedy."""
    package = Path(sallyport.__file__).parent
    paths = [program, Path(sys.executable), package]
    real = [path.resolve() for path in paths]
    for path in (*paths, *real):
        hidden = next((directory for directory in HIDDEN if path.is_relative_to(directory)), None)
        if hidden is not None:
            raise _refusal(program, f"{path} is in {hidden}, and systemd hides this directory from the service")
    try:
        runs = [
            account.run(str(program), "--version"),
            account.run(sys.executable, "-P", "-c", "import sallyport.service.serve"),
        ]
    except (OSError, subprocess.TimeoutExpired):
        runs = []
    if not runs or any(done.returncode for done in runs):
        blocked = account.unreachable([*paths, *real])
        said = next(
            (done.stderr.strip().splitlines()[-1] for done in runs if done.stderr.strip()), "the program does not start"
        )
        raise _refusal(program, f"no access to {blocked}" if blocked else said)


def _refusal(program: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"the user {USER} cannot run {program}: {reason}. Install the program where every user can run "
        "it, then run `server install` of the new program: sudo /usr/bin/python3 -m venv /opt/sallyport "
        "&& sudo /opt/sallyport/bin/pip install WHEEL && sudo /opt/sallyport/bin/sallyport server "
        "install"
    )


def _change(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  the words above
            command, env={"PATH": PATH, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ConfigError(f"{command[0]}: {error.strerror}; install the package that contains it") from None
    said = done.stderr.strip().removeprefix(f"{command[0]}: ")
    if done.returncode:
        raise ConfigError(f"{command[0]}: {said or f'exit status {done.returncode}'}")

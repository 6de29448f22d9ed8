"""The steps of `sallyport server install`. Each step can be repeated, and changes only parts that are missing or wrong.

All conditions of the installation are checked before the first change. If a step fails, the installation stops. The
next attempt skips what is done already, and so continues with the failed step.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sallyport.base.errors import ConfigError
from sallyport.deploy import account, units
from sallyport.deploy.account import Account
from sallyport.deploy.settings_file import settings_file
from sallyport.host import disk, systemd
from sallyport.host.systemd import CONFIG_DIR, CONFIG_FILE, DATA_DIR, UNITS, USER
from sallyport.settings.master_key import given_keys
from sallyport.settings.settings import Settings, load
from sallyport.settings.values import MASTER_KEY
from sallyport.store.data_folder import TOKEN_FILE

THERE: Final = "is there already"
_CONFIG_MODE: Final = 0o640
_DATA_MODE: Final = 0o700
_PRIVATE_MODE: Final = 0o600


class Installation:
    """The installation of the system service with this program. report: a function that receives a line for each step.
    warn: a function that receives each warning.

    Raises ConfigError, before anything is changed, if the service cannot be installed.
    """

    def __init__(self, program: Path, report: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._program = program
        self._report = report
        self._warn = warn
        self.has_systemd = shutil.which("systemctl", path=systemd.PATH) is not None
        self.is_packaged = has_package(program)
        if DATA_DIR.is_symlink():
            raise ConfigError(
                f"{DATA_DIR} is a symbolic link, but systemd does not accept a link here: mount the disk at this "
                "path, or set data_dir"
            )
        for path in () if self.is_packaged else units.unit_paths():
            if path.is_symlink():
                raise ConfigError(
                    f"{path} is a symbolic link, perhaps created by `systemctl mask`: systemctl unmask {path.name}"
                )
        account.check_program(program, account.find() or account.ANYONE)
        self._read_settings()

    def make(self, environ: Mapping[str, str]) -> bool:
        """Create everything that is missing. Return whether a unit has changed. Raises ConfigError if a step failed."""
        try:
            user = self._make_user()
            self._make_settings(user)
            settings = self._read_settings()
            self._make_data(settings, user)
            self._give_database_files(settings, user)
            self._make_store(settings, user, environ)
            changed = self._make_units(settings)
            self._doubt(settings, user)
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from None
        return changed

    def _read_settings(self) -> Settings:
        """Return the settings in the settings file. Their paths are made absolute. If the file does not exist, return
        the settings that a new file would have."""
        if not CONFIG_FILE.exists():
            return Settings(data_dir=DATA_DIR)
        try:
            return load(CONFIG_FILE, {}).below(DATA_DIR)
        except ConfigError as error:
            raise ConfigError(f"{CONFIG_FILE}: {str(error).removeprefix(f'{CONFIG_FILE}: ')}") from None

    def _make_user(self) -> Account:
        found = account.find()
        user = found or account.make()
        self._report(f"user {USER} {THERE if found else 'was created'}")
        return user

    def _make_settings(self, user: Account) -> None:
        systemd.make_directory(CONFIG_DIR, 0o755)
        if CONFIG_DIR.stat().st_mode & 0o005 != 0o005:  # `agent install` may have made the directory private
            CONFIG_DIR.chmod(0o755)
        if CONFIG_FILE.exists() and user.can_read(CONFIG_FILE):
            self._report(f"{CONFIG_FILE} {THERE}")
            return
        is_new = not CONFIG_FILE.exists()
        if is_new:
            disk.write(CONFIG_FILE, settings_file().encode(), mode=_CONFIG_MODE)
        os.chown(CONFIG_FILE, 0, user.gid)
        CONFIG_FILE.chmod(_CONFIG_MODE)
        self._report(f"{CONFIG_FILE} {'was created' if is_new else f'is readable by the group {USER} now'}")

    def _make_data(self, settings: Settings, user: Account) -> None:
        for directory in dict.fromkeys((DATA_DIR, settings.data_dir)):
            is_new = not directory.exists()
            systemd.make_directory(directory, _DATA_MODE)
            if directory.stat().st_uid != user.uid:
                _give(directory, user)
            if stat.S_IMODE(directory.stat().st_mode) != _DATA_MODE:
                directory.chmod(_DATA_MODE)
            self._report(f"{directory} {'was created' if is_new else THERE}")

    def _give_database_files(self, settings: Settings, user: Account) -> None:
        """Let the service's user read the files that the URL of the database names. If the user cannot read the
        password file or the key, and root owns the file, the user becomes its owner. An admin cannot do this earlier,
        because the user does not exist before the first installation.

        Raises ConfigError if a file is missing, or if the service's user still cannot read the file.
        """
        for name, path in units.database_files(settings):
            if not path.is_file():
                raise ConfigError(f"setting database: {name} {path} does not exist")
            if not user.can_read(path) and name in units.PRIVATE and path.lstat().st_uid == 0:
                os.chown(path, user.uid, user.gid, follow_symlinks=False)
                path.chmod(_PRIVATE_MODE)
                self._report(f"{path} belongs to the user {USER} now")
            if not user.can_read(path):
                raise ConfigError(
                    f"setting database: the user {USER} cannot read {name} {path}; give the file to this user, and "
                    "put it in a directory that this user can enter"
                )

    def _make_store(self, settings: Settings, user: Account, environ: Mapping[str, str]) -> None:
        if not settings.database_url and settings.database_path.exists():
            self._report(f"{settings.database_path} {THERE}")
            return
        token = settings.data_dir / TOKEN_FILE
        had_token = token.exists()
        given = given_keys(environ, settings.data_dir)
        key = {MASTER_KEY: given[1]} if given else {}
        done = user.run(
            str(self._program), "--config", str(CONFIG_FILE), "db", "migrate", environ=key, directory=DATA_DIR
        )
        if done.returncode:
            said = done.stderr.strip().rpartition("\n")[2].removeprefix("sallyport: ")
            raise ConfigError(f"the store was not created: {said}")
        made = (
            "the tables of the database are up to date"
            if settings.database_url
            else f"{settings.database_path} was created"
        )
        self._report(made + (f"; the first access token is in {token}" if token.exists() and not had_token else ""))

    def _make_units(self, settings: Settings) -> bool:
        """Write the units and drop-ins that have changed, and remove drop-ins that are not needed. Return whether a
        unit or drop-in has changed."""
        if not self.has_systemd:
            self._report("no unit was created, because systemd is not installed")
            return False
        texts = units.drop_ins(settings)
        if self.is_packaged:
            self._report("a package has installed the units already")
        else:
            texts |= {systemd.ADMIN_UNITS / name: units.unit(name, self._program) for name in UNITS}
        changed = False
        for path, text in texts.items():
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            if before == text:
                if text:
                    self._report(f"{path} {THERE}")
                continue
            changed = True
            self._replace_unit(path, before, text)
        if changed and systemd.is_booted():
            systemd.systemctl("daemon-reload")
        return changed

    def _replace_unit(self, path: Path, before: str, text: str) -> None:
        if not text:
            path.unlink()
            self._report(f"{path} was removed, because the settings no longer need it")
            return
        if before and path.parent == systemd.ADMIN_UNITS:
            systemd.write_unit(old(path), before)
        systemd.write_unit(path, text)
        self._report(
            f"{path} was " + (f"updated; a copy of the old unit is in {old(path).name}" if before else "created")
        )

    def _doubt(self, settings: Settings, user: Account) -> None:
        """Warn about files and directories in the settings that the unit hides from the service, and about files that
        the service's user cannot read."""
        for name, path in (*units.read_paths(settings), *units.written_paths(settings)):
            if units.is_hidden(path):
                self._warn(
                    f"setting {name}: the unit hides {path} from the service; use a path in {CONFIG_DIR} or {DATA_DIR}"
                )
        for name, path in units.read_paths(settings):
            if not user.can_read(path):
                self._warn(f"setting {name}: the user {USER} cannot read {path}")


def has_package(program: Path) -> bool:
    """Return whether a package has installed the units for this program. Raises ConfigError if a package has installed
    units that start another program."""
    for path in (directory / systemd.UNIT for directory in systemd.PACKAGE_UNITS):
        if path.exists():
            started = re.search(r"(?m)^ExecStart=(\S+)", path.read_text(encoding="utf-8"))
            if started is None or Path(started[1]).resolve() != program.resolve():
                raise ConfigError(
                    f"{path} belongs to a package and starts another program: use that program, or remove the package "
                    "first"
                )
            return True
    return False


def old(path: Path) -> Path:
    """Return the path of the copy of a unit. The copy keeps the old text of the unit."""
    return path.with_name(f"{path.name}.old")


def _give(directory: Path, user: Account) -> None:
    """Make the service's user the owner of a directory. The directory must be empty, or must be the standard data
    directory. In the standard data directory, the user also becomes the owner of all content, as with StateDirectory=
    of systemd (systemd.exec(5)).

    Raises ConfigError if another directory has content, because an admin must decide which user owns the content.
    """
    if directory != DATA_DIR and any(directory.iterdir()):
        raise ConfigError(
            f"data_dir {directory} belongs to another user. If the directory belongs to the service: sudo "
            f"chown -R {USER}: {directory}"
        )
    for _, names, files, descriptor in os.fwalk(directory):
        os.chown(descriptor, user.uid, user.gid)
        for name in (*names, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)

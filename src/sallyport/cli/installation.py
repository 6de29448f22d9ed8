"""How a command finds the installation.

The command uses the first of these that exists: the settings file of `--config`; the data directory of
SALLYPORT_DATA_DIR; `./sallyport.toml` or `./sallyport-data`; the installation of the system service. A file or
directory in the working directory counts only if the caller or root owns it. Otherwise another user could create it in
a directory such as /tmp, and manipulate root's next command.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.base.errors import StartError
from sallyport.host import systemd
from sallyport.host.owner import denied, user_name
from sallyport.settings.settings import DEFAULT_DATA_DIR, Settings, load
from sallyport.settings.values import environment_name
from sallyport.store.data_folder import LOCK

FILE: Final = Path("sallyport.toml")
DATA_DIR: Final = environment_name("data_dir")
CONFIG: Final = "--config"
NOTHING_HERE: Final = f"no Sallyport installation in ./{DEFAULT_DATA_DIR}; set {DATA_DIR} or {CONFIG}"


@dataclass(frozen=True, slots=True)
class Installation:
    """The location of an installation, which may not exist.

    file: the settings file. named_by: the option, variable or file that names the data directory. is_callers: whether
    the caller has named the installation explicitly.
    """

    settings: Settings
    file: Path | None = None
    named_by: str = ""
    is_callers: bool = False

    def __str__(self) -> str:
        """Return the data directory as the user would type it, and the settings file."""
        path = self.settings.data_dir
        text = f"./{path}" if path == DEFAULT_DATA_DIR else str(path)
        return text if self.file is None else f"{text} ({self.file})"

    @property
    def absence(self) -> str:
        """Return the error message for the case that there is no installation at this location."""
        if not self.named_by:
            return NOTHING_HERE
        return f"no Sallyport installation in {self.settings.data_dir}, which {self.named_by} names"

    def exists(self, *, keyed: bool = False) -> bool:
        """Return whether a store exists, or a starting service is creating a store. Raises StartError if the user has
        no permission to look.

        keyed: whether a master key is sufficient, even if there is no store.
        """
        data_dir = self.settings.data_dir
        marks = [self.settings.database_path, data_dir / LOCK, *([data_dir / "master.key"] if keyed else [])]
        return is_there(data_dir) and any(is_there(path, data_dir) for path in marks)


@dataclass(frozen=True, slots=True)
class Places:
    """The possible locations of the installation, in order of precedence.

    passed_over: a message for each file or directory in the working directory that is ignored. The message contains the
    reason.
    """

    places: tuple[Installation, ...]
    passed_over: tuple[str, ...] = ()


def places(config: Path | None, environ: Mapping[str, str]) -> Places:
    """Return the possible locations of the installation. Raises ConfigError if settings cannot be read. Raises
    StartError."""
    if config is not None:
        return Places((Installation(_read(config, environ), config, CONFIG, is_callers=True),))
    strange: list[str] = []
    file = FILE if _counts(FILE, strange, remedy=CONFIG) else None
    settings = load(file, environ)
    if DATA_DIR in environ:
        return Places((Installation(settings, file, DATA_DIR, is_callers=True),), tuple(strange))
    found = []
    if settings.data_dir != DEFAULT_DATA_DIR:
        found.append(Installation(settings, file, f"./{FILE}"))
    elif _counts(DEFAULT_DATA_DIR, strange, remedy=DATA_DIR) is not False:
        found.append(Installation(settings, file))
    if file is None and is_there(systemd.CONFIG_FILE):
        found.append(Installation(_read(systemd.CONFIG_FILE, environ), systemd.CONFIG_FILE, str(systemd.CONFIG_FILE)))
    elif file is None and is_there(systemd.DATA_DIR):
        found.append(
            Installation(settings.model_copy(update={"data_dir": systemd.DATA_DIR}), None, "the system service")
        )
    return Places(tuple(found), tuple(strange))


def _read(file: Path, environ: Mapping[str, str]) -> Settings:
    """Return the settings in a file. Raises ConfigError. In the settings file of the system service, relative paths
    start at the working directory of the service."""
    settings = load(file, environ)
    return settings.below(systemd.DATA_DIR) if file == systemd.CONFIG_FILE else settings


def is_there(path: Path, owner: Path | None = None) -> bool:
    """Return whether a path exists. Raises StartError if the user has no permission to look.

    owner: a path for the error message. The owner of this path has the permission.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise StartError(denied(owner or path, owner)) from error
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    return True


def _counts(path: Path, strange: list[str], *, remedy: str) -> bool | None:
    """Return whether the caller or root owns a path. If the path is a link, the target must have such an owner too.
    Return None if the path does not exist.

    strange: a list to which the reason is added if the result is False. remedy: the option or variable that makes a
    command use the path anyway.
    """
    try:
        other_owners = {path.lstat().st_uid, path.stat().st_uid} - {0, os.geteuid()}
    except FileNotFoundError:
        return None
    except OSError as error:
        strange.append(f"./{path} is ignored: {error.strerror}")
        return False
    for user_id in sorted(other_owners):
        strange.append(f"./{path} belongs to user {user_name(user_id)} and is ignored; to use it, set {remedy}")
    return not other_owners

"""Where the master key of a process comes from.

It comes from the first of these that is given: the variable SALLYPORT_MASTER_KEY, the file that
SALLYPORT_MASTER_KEY_FILE names, the credential `master.key` of systemd, and the file `master.key` in the data
directory, which `store/vault.py` reads.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sallyport.base.errors import ConfigError
from sallyport.host import systemd
from sallyport.settings.values import CREDENTIALS, MASTER_KEY, MASTER_KEY_FILE

KEY_FILE: Final = "master.key"
"""The name of the key file in the data directory, and of the credential."""


def given_keys(environ: Mapping[str, str], data_dir: Path) -> tuple[str, str] | None:
    """Return where the master keys that were given to a process come from, and their text. Return None if there are
    none: then the data directory has them.

    A command of root for the system service reads the file of the credential itself. Raises ConfigError if two
    variables give keys, or if their file cannot be read. An empty credential counts as none: the unit has one where the
    administrator has put no key.
    """
    text, named = environ.get(MASTER_KEY), environ.get(MASTER_KEY_FILE)
    if text is not None and named is not None:
        raise ConfigError(f"{MASTER_KEY} and {MASTER_KEY_FILE} are both set: keep one of them")
    if text is not None:
        return MASTER_KEY, text
    if named is not None:
        return named, key_text(Path(named))
    folder = environ.get(CREDENTIALS, systemd.CREDENTIALS_DIR if data_dir == systemd.DATA_DIR else "")
    credential = Path(folder, KEY_FILE)
    found = key_text(credential) if folder and _is_file(credential) else ""
    return (str(credential), found) if found.strip() else None


def _is_file(path: Path) -> bool:
    """Return whether a path is a file. A directory that this user cannot enter has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def key_text(path: Path) -> str:
    """Return the text of a key file. Raises ConfigError."""
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise ConfigError(f"the key file {path} is missing, and the store needs it: put it back") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error

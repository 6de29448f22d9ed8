"""Reads and checks the configuration file of an agent, and rewrites the file when the agent's API keys change. It also
locks the agent's state directory.

    service = "https://sallyport.example.org"
    enrolment_key = "spk_..."

    [directory]
    servers = ["ldaps://dc1.example.org"]

The file contains secrets, so it must be private: a regular file that belongs to the agent's user or root, with mode
0600 or stricter. An unknown TOML key is an error. No error message contains a value. The agent rewrites only the lines
of its API keys, and keeps all other lines, including comments.
"""

import fcntl
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.base.errors import ConfigError, Locked
from sallyport.base.secret import Secret
from sallyport.host import disk

MAX_OCTETS: Final = 65_536
STATE_DIR: Final = "/var/lib/sallyport-agent"
_TABLE: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)


class SettingsTable:
    """A TOML table of the file. Each method removes one key from the table and returns its value. At the end, `end`
    raises an error if keys are left, because they are unknown."""

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = dict(values)
        self._where = where

    def text(self, name: str, default: str | None = None) -> str:
        """Remove a key whose value is a text, and return the value. Without a default, the key is required and must not
        be empty. Raises ConfigError."""
        value = self._values.pop(name, default)
        if value is None or (default is None and value == ""):
            raise self.wrong(name, "is missing")
        if not isinstance(value, str) or not value.isprintable():
            raise self.wrong(name, "must be text")
        return value

    def long_text(self, name: str, default: str = "") -> str:
        """Remove a key whose value is a text of several lines, and return the value. Raises ConfigError."""
        value = self._values.pop(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "must be text")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Remove a key whose value is an array of texts, and return the value. Raises ConfigError."""
        value = self._values.pop(name, list(default))
        if not isinstance(value, list) or not all(isinstance(each, str) and each.isprintable() for each in value):
            raise self.wrong(name, "must be an array of texts")
        return tuple(value)

    def flag(self, name: str, default: bool) -> bool:
        """Remove a key whose value is true or false, and return the value. Raises ConfigError."""
        value = self._values.pop(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Remove a key whose value is a whole number from `low` to `high`, and return the value. Raises ConfigError."""
        value = self._values.pop(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(name, f"must be a whole number from {low} to {high}")
        return value

    def choice(self, name: str, default: str, *others: str) -> str:
        """Remove a key whose value is one of several words, and return the value. The allowed words are the default and
        `others`. Raises ConfigError."""
        value = self._values.pop(name, default)
        if value not in (default, *others):
            raise self.wrong(name, f"must be one of {', '.join((default, *others))}")
        return str(value)

    def table(self, name: str) -> "SettingsTable":
        """Remove a key whose value is a table, and return the table. If the key is missing, return an empty table.
        Raises ConfigError."""
        value = self._values.pop(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, "must be a table")
        return SettingsTable(value, f"{self._where} [{name}]")

    def wrong(self, name: str, what: str) -> ConfigError:
        """Return an error about a key of this table. The error does not contain the value. what: the fault, such as
        "must be a table"."""
        return ConfigError(f"{self._where}: {name} {what}")

    def end(self) -> None:
        """Raise ConfigError if the table still has keys. Such keys are unknown."""
        if self._values:
            raise ConfigError(f"{self._where}: unknown key {', '.join(sorted(map(repr, self._values)))}")


@dataclass(frozen=True, slots=True)
class AgentCredentials:
    """The API keys in the file.

    key: the agent's own key. next_key: a key that the agent has generated and that the service has not accepted yet.
    renew_at: the time at which to renew `key`, in ISO 8601, or empty if unknown. former_key: the agent's previous key.
    A service that was restored from a backup may know only the previous key.
    """

    enrolment_key: Secret | None = None
    key: Secret | None = None
    next_key: Secret | None = None
    renew_at: str = ""
    former_key: Secret | None = None


@dataclass(frozen=True, slots=True)
class AgentFile:
    """The settings that every agent's file contains. own: the table `[endpoint]` or `[directory]`. The agent of this
    table reads and checks it."""

    path: Path
    service: str
    ca_certificate: Path | None
    state_dir: Path
    credentials: AgentCredentials
    own: SettingsTable


def read(path: Path, agent: str) -> AgentFile:
    """Return the settings in an agent's file. agent: the name of the agent's table. Raises ConfigError if the file is
    missing, not private, or invalid."""
    table = SettingsTable(_parsed(_text(path), path), str(path))
    ca_certificate = table.text("ca_certificate", "")
    file = AgentFile(
        path,
        service=table.text("service"),
        ca_certificate=Path(ca_certificate) if ca_certificate else None,
        state_dir=Path(table.text("state_dir", STATE_DIR)),
        credentials=AgentCredentials(
            _secret(table.text("enrolment_key", "")),
            _secret(table.text("key", "")),
            _secret(table.text("next_key", "")),
            table.text("renew_at", ""),
            _secret(table.text("former_key", "")),
        ),
        own=table.table(agent),
    )
    table.end()
    return file


def rewrite(path: Path, changes: Mapping[str, str | None]) -> None:
    """Set text values at the top of the file, or delete them, in one atomic write.

    changes: the new value of each TOML key; None deletes the key. Raises ConfigError if the file cannot be written, or
    if a key is not on its own line above the tables.
    """
    before = _text(path)
    text = before
    for name, value in changes.items():
        text = _with(text, name, value)
    wanted = {**_parsed(before, path), **{name: value for name, value in changes.items() if value is not None}}
    for name, value in changes.items():
        if value is None:
            wanted.pop(name, None)
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        written = {}
    if written != wanted:
        raise ConfigError(f"{path}: {', '.join(changes)} must each have a line of their own, above the tables")
    disk.write(path, text.encode(), like=path)


def _with(text: str, name: str, value: str | None) -> str:
    """Return the text of a file in which the line of a TOML key is set, added or deleted. value: printable text without
    quotes, or None to delete the line."""
    table = _TABLE.search(text)
    top, rest = (text, "") if table is None else (text[: table.start()], text[table.start() :])
    line = "" if value is None else f'{name} = "{value}"\n'
    pattern = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*=.*(?:\n|\Z)", re.MULTILINE)
    if pattern.search(top):
        return pattern.sub(line, top, count=1) + rest
    blank = "\n" if rest and top.endswith("\n\n") else ""
    top = top.rstrip("\n") + "\n" if top.strip() else ""
    return top + line + blank + rest


def _secret(text: str) -> Secret | None:
    return Secret(text.encode()) if text else None


def _parsed(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The message of tomllib may contain one character of a value, but not more.
        raise ConfigError(f"{path}: {error}") from None


def _text(path: Path) -> str:
    """Return the text of a private file. Raises ConfigError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    try:
        _check_owner(path, os.fstat(descriptor))
        octets = os.read(descriptor, MAX_OCTETS + 1)
        if len(octets) > MAX_OCTETS:
            raise ConfigError(f"{path}: the file is longer than {MAX_OCTETS} octets")
        return octets.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the file cannot be read as UTF-8 text") from error
    finally:
        os.close(descriptor)


def _check_owner(path: Path, found: os.stat_result) -> None:
    """Check that the file is regular and private. Raises ConfigError."""
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path}: the path is not a regular file")
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"{path}: the file belongs to another user")
    if found.st_mode & 0o077:
        raise ConfigError(f"{path}: other users may read or write the file; run chmod 600")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a state directory within this context. The directory is created if it is missing.

    Raises Locked if another agent has the lock. Raises ConfigError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{folder}: another agent is running with this state directory") from None
        yield
    finally:
        os.close(descriptor)

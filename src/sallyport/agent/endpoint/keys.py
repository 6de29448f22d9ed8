"""The SSH keys of accounts. Depending on its configuration, the agent writes them into authorized_keys, or into files
that an AuthorizedKeysCommand reads (sshd_config(5)).

In authorized_keys, the agent's keys are in a block between two marker lines. The block contains only keys of the agent.
The lines outside the block belong to the user. The files for the AuthorizedKeysCommand belong to root and are outside
of home directories.

sshd follows symbolic links and reads an authorized_keys file of any length. The agent does neither. If the agent must
remove unknown keys, and cannot read a file to its end, it replaces this file. If the agent must not remove unknown
keys, it keeps the long file under the name authorized_keys.long, and keeps only the first lines in authorized_keys.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from unicodedata import ucd_3_2_0

from sallyport.agent.endpoint.accounts import Account
from sallyport.agent.endpoint.files import Content, Files, Mode
from sallyport.agentwire.report import FoundKey
from sallyport.base.errors import HostError

BEGIN: Final = "# BEGIN sallyport: what stands between these lines is rewritten"
END: Final = "# END sallyport"
MAX_LENGTH: Final = 1_000_000
_FILE: Final = "authorized_keys"
_SECOND: Final = "authorized_keys2"
"""The second file that sshd reads by default (AuthorizedKeysFile in sshd_config(5))."""
_LONG: Final = "authorized_keys.long"
_SSH: Final = ".ssh"
_EXPIRES: Final = "# expires "
_KINDS: Final = ("ssh-", "ecdsa-", "sk-")


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The lines of authorized_keys and authorized_keys2.

    managed: the lines in the agent's block. others: the lines outside the block. second: the lines of authorized_keys2.
    The agent writes no keys into this file. is_whole, second_is_whole: whether the whole file was read.
    """

    managed: tuple[str, ...]
    others: tuple[str, ...]
    second: tuple[str, ...] = ()
    is_whole: bool = True
    second_is_whole: bool = True

    def with_keys(self, keys: Sequence[str], *, alone: bool) -> bytes:
        """Return the content of authorized_keys with these keys in the block. alone: whether to leave out all other
        keys."""
        others = [line for line in self.others if not alone or not is_key(line)]
        block = [BEGIN, *keys, END] if keys else []
        lines = [*others, *block]
        return ("\n".join(lines) + "\n" if lines else "").encode("utf-8", "surrogateescape")

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys in both files that do not belong to the agent."""
        return tuple(line for line in (*self.others, *self.second) if is_key(line))


def parse(octets: bytes) -> KeyFile:
    """Return the lines of authorized_keys. If the end marker of the block is missing, the lines after the begin marker
    count as lines of the user."""
    managed: list[str] = []
    others: list[str] = []
    block: list[str] | None = None
    for line in _lines(octets):
        if line == END:
            managed += block or ()
            block = None
        elif line == BEGIN and block is None:
            block = []
        elif line != BEGIN or block is None:
            (others if block is None else block).append(line)
    return KeyFile(tuple(managed), (*others, *(block or ())))


def _lines(octets: bytes) -> tuple[str, ...]:
    return tuple(octets.decode("utf-8", "surrogateescape").splitlines())


def is_key(line: str) -> bool:
    """Return whether sshd interprets a line as a key. sshd ignores empty lines and comments."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def found(line: str, *, managed: bool) -> FoundKey:
    """Return the key in a line for display: type, fingerprint and comment, without options. An invalid key has the type
    `unknown` and no fingerprint."""
    words = line.split()
    at = next((i for i, word in enumerate(words[:-1]) if word.startswith(_KINDS)), None)
    if at is None:
        return FoundKey("unknown", "", "", managed)
    try:
        octets = base64.b64decode(words[at + 1], validate=True)
    except (binascii.Error, ValueError):
        return FoundKey("unknown", "", "", managed)
    sha256 = base64.b64encode(hashlib.sha256(octets).digest()).decode("ascii").rstrip("=")
    return FoundKey(printable(words[at], 64), f"SHA256:{sha256}", printable(" ".join(words[at + 2 :]), 200), managed)


def printable(text: str, most: int) -> str:
    """Return text for a message, truncated to `most` characters. A character is replaced if it is not printable, or if
    Unicode 3.2 does not contain it.

    Any user of the host can write such a character into the comment of a key. The service does not accept a report that
    contains a character that is not printable for the Python version of the service. This Python version may be older
    than the agent's version.
    """
    return "".join(each if _is_plain(each) else "\ufffd" for each in text[:most])


def _is_plain(character: str) -> bool:
    return character.isprintable() and (character.isascii() or ucd_3_2_0.category(character) != "Cn")


class UserKeys:
    """The files authorized_keys and authorized_keys2 in the home directories of accounts."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def read(self, account: Account) -> KeyFile:
        """Return the lines of both files. Raises HostError if a file or directory is a symbolic link or belongs to
        another account, or if a directory is writable by others."""
        if not self._has_any(account):
            return KeyFile((), ())
        owners, mode = frozenset({account.uid}), Mode(0o700, account.uid, account.gid)
        with (
            self._files.directory(account.home, owners) as home,
            self._files.within(home, _SSH, mode, make=False) as ssh,
        ):
            first, second = (self._files.look(ssh, each, owners=owners, most=MAX_LENGTH) for each in (_FILE, _SECOND))
        there = parse(first.octets) if first else KeyFile((), ())
        lines = _lines(second.octets) if second else ()
        wholes = [each is None or each.is_whole for each in (first, second)]
        return replace(there, second=lines, is_whole=wholes[0], second_is_whole=wholes[1])

    def _has_any(self, account: Account) -> bool:
        return any(self._files.exists(f"{account.home}/.ssh/{each}") for each in (_FILE, _SECOND))

    def write(self, account: Account, keys: Sequence[str], *, alone: bool) -> None:
        """Write keys into the block. alone: whether to remove all other keys. Raises HostError in the same cases as
        `read`, and if the disk is full."""
        if not keys and not self._has_any(account):
            return
        owners, mode = frozenset({account.uid}), Mode(0o700, account.uid, account.gid)
        with self._files.directory(account.home, owners) as home:
            if alone:
                self._files.drop_link(home, _SSH)
            with self._files.within(home, _SSH, mode, make=True) as ssh:
                self._write_first(ssh, account, keys, alone=alone)
                if alone:
                    self._empty_second(ssh, account)

    def _write_first(self, ssh: int, account: Account, keys: Sequence[str], *, alone: bool) -> None:
        before = self._look(ssh, _FILE, account, alone=alone)
        there = before.octets if before else b""
        if before is not None and not before.is_whole:
            if not alone:
                with suppress(HostError):  # there may be a directory with that name
                    self._files.keep_as(ssh, _FILE, _LONG)
            # Keep only the first lines, so that the file with the keys is shorter than MAX_LENGTH.
            there = there[: there.rfind(b"\n", 0, MAX_LENGTH // 2) + 1]
        octets = parse(there).with_keys(keys, alone=alone)
        if before != Content(octets, is_whole=True) and (before is not None or octets):
            self._files.put(ssh, _FILE, octets, Mode(0o600, account.uid, account.gid))

    def _empty_second(self, ssh: int, account: Account) -> None:
        before = self._look(ssh, _SECOND, account, alone=True)
        if before not in {None, Content(b"", is_whole=True)}:
            self._files.put(ssh, _SECOND, b"", Mode(0o600, account.uid, account.gid))

    def _look(self, ssh: int, name: str, account: Account, *, alone: bool) -> Content | None:
        """Return the content of a file in .ssh, or None if the file does not exist. alone: whether the file will be
        replaced completely. In this case, a file that cannot be read counts as empty."""
        try:
            return self._files.look(ssh, name, owners=frozenset({account.uid}), most=MAX_LENGTH)
        except HostError:
            if not alone:
                raise
            return Content(b"", is_whole=False)


class CommandKeys:
    """The files that `sallyport agent authorized-keys USER` reads. The files belong to root, and all users can read
    them."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def read(self, name: str) -> bytes:
        """Return the content of an account's file. Return empty octets if the file does not exist."""
        return self._files.read(f"{self._directory}/{name}", most=MAX_LENGTH * 4) or b""

    def write(self, name: str, octets: bytes) -> None:
        """Write the file of an account. If the content is empty, remove the file. Raises HostError."""
        if not octets:
            self._files.remove(f"{self._directory}/{name}")
            return
        self._files.make_directory(self._directory, 0o755)
        self._files.replace(f"{self._directory}/{name}", octets, Mode(0o644))


def for_command(keys: Sequence[str], expires: int | None) -> bytes:
    """Return the content of an account's file for the AuthorizedKeysCommand. expires: the time until which the keys are
    valid, in microseconds, or None for no limit."""
    if not keys:
        return b""
    until = () if expires is None else (f"{_EXPIRES}{expires}",)
    return ("\n".join((*until, *keys)) + "\n").encode()


def authorized(octets: bytes, now: int) -> tuple[str, ...]:
    """Return the keys in an account's file that are valid at `now` (microseconds). Raises HostError if the file is not
    text."""
    try:
        lines = octets.decode("ascii", "strict").splitlines() if octets.isascii() else octets.decode().splitlines()
    except UnicodeDecodeError:
        raise HostError("the file of keys is not text") from None
    if lines and lines[0].startswith(_EXPIRES):
        until = lines[0].removeprefix(_EXPIRES)
        if not until.isdecimal() or int(until) <= now:
            return ()
    return tuple(line for line in lines if is_key(line))

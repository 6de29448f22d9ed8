"""Encryption of secrets in the store: AES-256-GCM under a versioned master key (NIST SP 800-38D).

A sealed value consists of the key version (one octet), the nonce (12 octets), the ciphertext and the tag. The row's
identity is the associated data, so that a value cannot be moved to another row. The key (64 hex digits) comes from the
first of these that is given: the variable SALLYPORT_MASTER_KEY, the file that SALLYPORT_MASTER_KEY_FILE names, the
credential `master.key` of systemd, and the file `master.key` in the data directory. The first start creates this last
file with mode 0600. No backup contains the key.

During a rotation and for old backups, there may be several keys. Each is written as `VERSION:HEX`, separated by commas
or line breaks. A key without a version has version 1. The key with the highest version encrypts; all keys decrypt.
"""

import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.log import Pseudonyms
from sallyport.base.secret import Secret
from sallyport.host import disk
from sallyport.settings.master_key import KEY_FILE, given_keys, key_text
from sallyport.settings.values import MASTER_KEY

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_OCTETS = 32
FIRST, LAST = 1, 255
_WRONG = f"the master key must have {2 * KEY_OCTETS} hex digits, or be several keys in the form VERSION:KEY"


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys by version. file: the key file in the data directory; None if the keys come from elsewhere.
    source: what the keys come from, for messages."""

    keys: Mapping[int, Secret]
    file: Path | None = None
    source: str = MASTER_KEY


class Vault:
    """The encryption of secrets under the master keys. keys: all keys by version, or the only key."""

    def __init__(self, keys: MasterKeys | Secret) -> None:
        self._ciphers: dict[int, AESGCM] = {}
        held = keys if isinstance(keys, MasterKeys) else MasterKeys({FIRST: keys})
        self._keys = dict(held.keys)
        self._retired: dict[int, Secret] = {}
        self.file, self.source = held.file, held.source
        self.pseudonyms = Pseudonyms(self._keys[max(self._keys)].reveal())

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the versions of the keys in ascending order. The last key encrypts."""
        return tuple(sorted(self._keys))

    @property
    def keys(self) -> dict[int, Secret]:
        """Return a copy of the keys."""
        return dict(self._keys)

    def at_next_start(self) -> "Vault":
        """Return a vault with the keys that the next start will have: those in the key file now. If the keys come from
        the environment, return this vault. Raises ConfigError if the key file cannot be read."""
        if self.file is None:
            return self
        return Vault(MasterKeys(parse_keys(_key_file(self.file, may_make=False)), self.file))

    def _missing(self, version: int) -> str:
        """Return what to do about a missing version of the master key."""
        needed = f"it needs version {version} of the master key, which"
        if self.file is None:
            return f"{needed} {self.source} does not have: add {version}:KEY to it, with the key of that version"
        old = self.file.with_name(f"{self.file.name}.{version}")
        with suppress(ConfigError):
            if version in self.at_next_start().versions:
                return f"{needed} {self.file} has, but this process has not read yet: restart the service"
        if old.exists():
            return f"{needed} {self.file} does not have: add the line in {old} to {self.file}"
        return (
            f"{needed} {self.file} does not have: add the line {version}:KEY to {self.file}, with the key of that "
            f"version, which `db rotate-key` has moved to {old.name}"
        )

    def derived(self, purpose: str) -> bytes:
        """Return 32 octets that are derived from the newest key. Nodes with the same newest key get the same octets.
        purpose: what the octets are used for; different purposes get different octets."""
        key = self._keys[max(self._keys)].reveal()
        return hmac.digest(key, f"sallyport {purpose}".encode(), "sha256")

    def add(self, version: int, key: Secret) -> None:
        """Add a key. If its version is the highest, this key encrypts from now on."""
        self._keys[version] = key

    def retire(self) -> None:
        """Remove all keys except the newest from `keys`. The removed keys can decrypt until the process ends."""
        newest = max(self._keys)
        self._retired |= {each: key for each, key in self._keys.items() if each != newest}
        self._keys = {newest: self._keys[newest]}

    def _cipher(self, version: int) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if version not in self._ciphers:
            self._ciphers[version] = AESGCM({**self._retired, **self._keys}[version].reveal())
        return self._ciphers[version]

    def seal(self, clear: bytes, identity: str) -> bytes:
        """Encrypt a value. identity: the row and column of the value, such as `radius_clients/7/secret`."""
        nonce, version = secrets.token_bytes(12), max(self._keys)
        return bytes((version,)) + nonce + self._cipher(version).encrypt(nonce, clear, identity.encode())

    def digest(self, clear: bytes, purpose: str) -> str:
        """Return a keyed hash (HMAC-SHA-256) in hexadecimal digits. Nodes with the same newest key return the same
        hash."""
        key = hmac.digest(self._keys[max(self._keys)].reveal(), purpose.encode(), "sha256")
        return hmac.digest(key, clear, "sha256").hex()

    def is_current(self, sealed: bytes) -> bool:
        """Return whether a value was sealed under the newest key."""
        return sealed[:1] == bytes((max(self._keys),))

    def open(self, sealed: bytes, identity: str) -> bytes:
        """Decrypt a value. Raises SecretError if the value was sealed under an unknown key or for another row, or was
        altered."""
        from cryptography.exceptions import InvalidTag

        if not sealed or sealed[0] not in self._keys.keys() | self._retired.keys():
            raise SecretError(f"{identity} cannot be decrypted: {self._missing(sealed[0] if sealed else 0)}")
        try:
            return self._cipher(sealed[0]).decrypt(sealed[1:13], sealed[13:], identity.encode())
        except (InvalidTag, ValueError):
            raise SecretError(
                f"{identity} cannot be decrypted with this master key: use the master key that belongs to this store"
            ) from None


def load_master_keys(data_dir: Path, environ: Mapping[str, str], *, may_make: bool) -> MasterKeys:
    """Return the master keys that were given to this process, or else those of the file `master.key`. Raises
    ConfigError.

    may_make: whether to create the file if it is missing. Pass true only if no store exists, because the values of an
    existing store need their old key.
    """
    given = given_keys(environ, data_dir)
    if given is not None:
        source, text = given
        return MasterKeys(parse_keys(text), source=source)
    path = data_dir / KEY_FILE
    return MasterKeys(parse_keys(_key_file(path, may_make=may_make)), path)


def write_keys(path: Path, keys: Mapping[int, Secret]) -> None:
    """Write the keys to a file, atomically. Raises ConfigError."""
    text = "".join(f"{version}:{keys[version].reveal().hex()}\n" for version in sorted(keys, reverse=True))
    disk.write(path, text.encode())


def parse_keys(text: str) -> dict[int, Secret]:
    """Parse the text of the key file or environment variable. Return the keys by version. Raises ConfigError."""
    found: dict[int, Secret] = {}
    for entry in text.replace(",", " ").split():
        version, mark, digits = entry.rpartition(":")
        try:
            number, key = int(version) if mark else FIRST, bytes.fromhex(digits)
        except ValueError:
            raise ConfigError(_WRONG) from None
        if len(key) != KEY_OCTETS or not FIRST <= number <= LAST or number in found:
            raise ConfigError(_WRONG)
        found[number] = Secret(key)
    if not found:
        raise ConfigError(_WRONG)
    return found


def _key_file(path: Path, *, may_make: bool) -> str:
    if may_make and not path.exists():
        return _new_key_file(path)
    return key_text(path)


def _new_key_file(path: Path) -> str:
    text = secrets.token_hex(KEY_OCTETS)
    disk.write(path, f"{text}\n".encode())
    return text

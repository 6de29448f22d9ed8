"""Sealing of secrets at rest: AES-256-GCM under a versioned master key (NIST SP 800-38D).

A sealed value is one octet of key version, 12 octets of nonce, then ciphertext and tag. The row's identity is the
associated data, so that a value cannot be opened after it was moved to another row. The key comes from
SALLYPORT_MASTER_KEY (64 hex digits) or the file `master.key` in the data directory, which is created with mode 0600 at
the first start. No backup contains it.

There may be several keys during a rotation or for an old backup, each as `VERSION:HEX`, on lines of their own or
separated by commas. A key without a version has version 1. The highest version seals, and all versions open.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sallyport.base import disk
from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.log import Pseudonyms
from sallyport.base.secret import Secret
from sallyport.base.setting_values import MASTER_KEY

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_OCTETS = 32
FIRST, LAST = 1, 255
FILE = "master.key"
_WRONG = f"the master key is {2 * KEY_OCTETS} hex digits, or several with VERSION: in front"


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys by version. file: the file from which they were read; None if they come from the environment."""

    keys: Mapping[int, Secret]
    file: Path | None = None


class Vault:
    """The master keys, which seal and open secrets. keys: all keys by version, or the only key."""

    def __init__(self, keys: MasterKeys | Secret) -> None:
        self._ciphers: dict[int, AESGCM] = {}
        held = keys if isinstance(keys, MasterKeys) else MasterKeys({FIRST: keys})
        self._keys = dict(held.keys)
        self._retired: dict[int, Secret] = {}
        self.file = held.file
        self.pseudonyms = Pseudonyms(self._keys[max(self._keys)].reveal())

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the versions of the keys. The key with the last of these versions seals."""
        return tuple(sorted(self._keys))

    @property
    def keys(self) -> dict[int, Secret]:
        """Return a copy of the keys."""
        return dict(self._keys)

    def derived(self, purpose: str) -> bytes:
        """Return 32 octets that are derived from the newest key. They are the same on all nodes. purpose: the use of
        the octets."""
        key = self._keys[max(self._keys)].reveal()
        return hmac.digest(key, f"sallyport {purpose}".encode(), "sha256")

    def add(self, version: int, key: Secret) -> None:
        """Add a key. If its version is the highest, it seals from now on."""
        self._keys[version] = key

    def retire(self) -> None:
        """Retire all keys except the one that seals. They still open values until the process ends, but `keys` no
        longer contains them."""
        newest = max(self._keys)
        self._retired |= {each: key for each, key in self._keys.items() if each != newest}
        self._keys = {newest: self._keys[newest]}

    def _cipher(self, version: int) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if version not in self._ciphers:
            self._ciphers[version] = AESGCM({**self._retired, **self._keys}[version].reveal())
        return self._ciphers[version]

    def seal(self, clear: bytes, identity: str) -> bytes:
        """Seal a value for the row named by `identity`, such as `radius_clients/7/secret`."""
        nonce, version = secrets.token_bytes(12), max(self._keys)
        return bytes((version,)) + nonce + self._cipher(version).encrypt(nonce, clear, identity.encode())

    def digest(self, clear: bytes, purpose: str) -> str:
        """Return a keyed hash in hex. It is equal for equal octets on all nodes that have the same newest key."""
        key = hmac.digest(self._keys[max(self._keys)].reveal(), purpose.encode(), "sha256")
        return hmac.digest(key, clear, "sha256").hex()

    def is_current(self, sealed: bytes) -> bool:
        """Return whether a value is sealed under the newest key."""
        return sealed[:1] == bytes((max(self._keys),))

    def open(self, sealed: bytes, identity: str) -> bytes:
        """Return the clear octets of a row's value. Raises SecretError if the value was sealed under another key or for
        another row, or if it was altered."""
        from cryptography.exceptions import InvalidTag

        if not sealed or sealed[0] not in self._keys.keys() | self._retired.keys():
            raise SecretError(f"{identity} is sealed under a key version that is not here")
        try:
            return self._cipher(sealed[0]).decrypt(sealed[1:13], sealed[13:], identity.encode())
        except (InvalidTag, ValueError):
            raise SecretError(f"{identity} does not open under this master key") from None


def load_master_keys(data_dir: Path, environ: Mapping[str, str], *, may_make: bool) -> MasterKeys:
    """Return the master keys from the environment, or else from the file. Raises ConfigError. may_make: whether to
    create a missing file. It must be true only if no store exists, because an existing store needs the key under which
    it was sealed.
    """
    text = environ.get(MASTER_KEY)
    if text is not None:
        return MasterKeys(parse_keys(text))
    path = data_dir / FILE
    return MasterKeys(parse_keys(_key_file(path, may_make=may_make)), path)


def write_keys(path: Path, keys: Mapping[int, Secret]) -> None:
    """Write a file of keys, atomically. Raises ConfigError."""
    text = "".join(f"{version}:{keys[version].reveal().hex()}\n" for version in sorted(keys, reverse=True))
    disk.write(path, text.encode())


def parse_keys(text: str) -> dict[int, Secret]:
    """Parse the text of a file or of the environment variable, and return the keys by version. Raises ConfigError if
    the text is malformed."""
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
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        if not may_make:
            raise ConfigError(f"{path} is missing, and the store was sealed with it: put it back") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return _new_key_file(path)


def _new_key_file(path: Path) -> str:
    text = secrets.token_hex(KEY_OCTETS)
    disk.write(path, f"{text}\n".encode())
    return text

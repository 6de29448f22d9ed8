"""Sealing of secrets at rest: AES-256-GCM under a versioned master key (NIST SP 800-38D).

A sealed value is one octet of key version, 12 octets of nonce, then ciphertext and tag. The row's identity is the
associated data, so that a value moved to another row does not open. The key comes from SALLYPORT_MASTER_KEY (64 hex
digits) or the file `master.key` in the data directory, made with mode 0600 on first start; it is not part of a
backup.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from sallyport.base.config import MASTER_KEY
from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.log import Pseudonyms
from sallyport.base.secret import Secret

KEY_OCTETS = 32
VERSION = 1
FILE = "master.key"


class Vault:
    """Seals and opens secrets."""

    def __init__(self, key: Secret) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key.reveal())
        self.pseudonyms = Pseudonyms(key.reveal())

    def seal(self, clear: bytes, identity: str) -> bytes:
        """Encrypt for the row named by `identity`, such as `radius_clients/7/secret`."""
        nonce = secrets.token_bytes(12)
        return bytes((VERSION,)) + nonce + self._cipher.encrypt(nonce, clear, identity.encode())

    def open(self, sealed: bytes, identity: str) -> bytes:
        """What was sealed for that row. SecretError: another key, another row, or altered octets."""
        from cryptography.exceptions import InvalidTag

        if not sealed or sealed[0] != VERSION:
            raise SecretError(f"{identity} is sealed under a key version that is not here")
        try:
            return self._cipher.decrypt(sealed[1:13], sealed[13:], identity.encode())
        except (InvalidTag, ValueError):
            raise SecretError(f"{identity} does not open under this master key") from None


def load_master_key(data_dir: Path, environ: Mapping[str, str], *, may_make: bool) -> Secret:
    """The master key of the environment, else of the file.

    may_make: a missing file is made: there is no store yet that another key has sealed. Raises ConfigError.
    """
    text = environ.get(MASTER_KEY)
    if text is None:
        text = _key_file(data_dir / FILE, may_make=may_make)
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != KEY_OCTETS:
        raise ConfigError(f"the master key is {2 * KEY_OCTETS} hex digits")
    return Secret(key)


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
    """Under another name until it is on disk in full: half a key would keep every later start from beginning."""
    text, part = secrets.token_hex(KEY_OCTETS), path.with_name(path.name + ".part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(descriptor)
        part.rename(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    return text

"""The agent's instance, and the public key that it checks the service's states with. Stored beside the agent's memory.

The service changes its key by a state that the old key has signed. From then on only the new key verifies a state that
comes; the state on disk may still be signed by the old one, and remains in force.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from sallyport.base import disk
from sallyport.base.agentwire.fields import Number, StateKey
from sallyport.base.errors import ConfigError, WireError
from sallyport.base.wire import Text, decode, dumps, loads

FILE: Final = "identity.json"
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Known:
    """The stored identity. state_key: 32 octets in base64; former_key: the last one."""

    instance: Number
    state_key: Annotated[str, Text(64, "[A-Za-z0-9+/]{43}=", "an Ed25519 key in base64")]
    former_key: StateKey = ""


class Identity:
    """The identity of the agent. write: replaces the file as a whole or not at all."""

    def __init__(self, path: Path, known: Known, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self.known = known
        self._write = write

    @classmethod
    def load(cls, directory: Path) -> "Identity | None":
        """Return the identity in the agent's directory; None before it has registered. ConfigError: an invalid file."""
        path = directory / FILE
        try:
            known = decode(Known, loads(path.read_bytes(), most=_MOST))
        except FileNotFoundError:
            return None
        except (OSError, WireError) as error:
            raise ConfigError(f"{path}: {error}; remove it, and the agent registers again") from None
        return cls(path, known)

    @property
    def instance(self) -> int:
        """The agent's instance."""
        return self.known.instance

    @property
    def key(self) -> str:
        """The public key that verifies new states."""
        return self.known.state_key

    def save(self) -> None:
        """Store the identity; it is on disk when this returns. ConfigError."""
        self._write(self._path, dumps(self.known) + b"\n")

    def verify(self, signature: bytes, octets: bytes) -> bool:
        """Return whether the service has signed new octets."""
        return verifies(self.known.state_key, signature, octets)

    def remembers(self, signature: bytes, octets: bytes) -> bool:
        """Return whether the service has signed octets that were accepted before."""
        former = self.known.former_key
        return self.verify(signature, octets) or (former != "" and verifies(former, signature, octets))

    def follow(self, key: str) -> None:
        """Verify later states with the key in a state, if it is another one. ConfigError."""
        if key not in {"", self.known.state_key}:
            before, self.known = self.known, Known(self.known.instance, key, self.known.state_key)
            try:
                self.save()
            except ConfigError:
                self.known = before
                raise


def verifies(key: str, signature: bytes, octets: bytes) -> bool:
    """Return whether a signature over octets is by that Ed25519 key (RFC 8032). key: 32 octets in base64."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(signature, octets)
    except (InvalidSignature, ValueError):
        return False
    return True


@cache
def own_version() -> str:
    """Return the installed version of this program."""
    from importlib.metadata import version  # takes as long to import as the rest of the agent's beginning

    return version("sallyport")

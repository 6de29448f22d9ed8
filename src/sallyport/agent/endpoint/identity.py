"""Which instance the agent is, and by which key it knows the service's states. Kept beside the agent's memory.

The service changes its key by a state that the old one has signed. From then on a state that comes is believed by the
new key alone; the one on disk may still be signed by the old one, and goes on to hold.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
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
    """What the service told. state_key: 32 octets in base64; former_key: the one before."""

    instance: Number
    state_key: Annotated[str, Text(64, "[A-Za-z0-9+/]{43}=", "an Ed25519 key in base64")]
    former_key: StateKey = ""


class Identity:
    """Who the agent is to the service. write: puts octets into the file whole or not at all."""

    def __init__(self, path: Path, known: Known, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self.known = known
        self._write = write

    @classmethod
    def load(cls, directory: Path) -> "Identity | None":
        """The one in the agent's directory; None before it has registered. ConfigError: the file is none."""
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
        """By which a state that comes is believed."""
        return self.known.state_key

    def save(self) -> None:
        """It is on disk when this returns. ConfigError."""
        self._write(self._path, dumps(self.known) + b"\n")

    def verify(self, signature: bytes, octets: bytes) -> bool:
        """Whether the service has signed octets that come."""
        return verifies(self.known.state_key, signature, octets)

    def remembers(self, signature: bytes, octets: bytes) -> bool:
        """Whether it has signed octets that were believed before."""
        former = self.known.former_key
        return self.verify(signature, octets) or (former != "" and verifies(former, signature, octets))

    def follow(self, key: str) -> None:
        """Know later states by the key that a state names, if it is another one. ConfigError."""
        if key not in {"", self.known.state_key}:
            before, self.known = self.known, Known(self.known.instance, key, self.known.state_key)
            try:
                self.save()
            except ConfigError:
                self.known = before
                raise


def verifies(key: str, signature: bytes, octets: bytes) -> bool:
    """Whether a signature is by that Ed25519 key (RFC 8032) over octets. key: 32 octets in base64."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(signature, octets)
    except (InvalidSignature, ValueError):
        return False
    return True

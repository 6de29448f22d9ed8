"""The instance of the agent, and the public key that verifies the service's states.

The agent receives the id of the instance and the public key when it registers, and stores them in one file of its state
directory. An agent that has lost this file registers again with its own API key.

The service announces a new public key in a state that is signed with the old key. After that, only the new key verifies
new states. The state on disk may still be signed with the old key. This state remains valid.
"""

import base64
import hashlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from sallyport import __version__
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.agentwire.fields import Number, StateKey
from sallyport.base.errors import ConfigError, ServiceAway, WireError
from sallyport.base.wire import Text, decode, dumps, loads, mapping
from sallyport.host import disk

FILE: Final = "identity.json"
REGISTER: Final = "/api/v1/machine/add-machine"
_MAX_OCTETS: Final = 10_000
_LINUX: Final = 1
_MACHINE_ID: Final = Path("/etc/machine-id")
_APPLICATION: Final = b"sallyport agent endpoint\0"


@dataclass(frozen=True, slots=True)
class StoredIdentity:
    """The stored identity of the agent. state_key: the public key that verifies states (32 octets in base64).
    former_key: the previous public key, or empty if there was none."""

    instance: Number
    state_key: Annotated[str, Text(64, "[A-Za-z0-9+/]{43}=", "an Ed25519 key in base64")]
    former_key: StateKey = ""


class Identity:
    """The identity of the agent, and the file that stores it. write: a function that replaces a file atomically."""

    def __init__(self, path: Path, known: StoredIdentity, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self.known = known
        self._write = write

    @classmethod
    def load(cls, directory: Path) -> "Identity | None":
        """Return the identity that is stored in a directory, or None if the agent has not registered yet. Raises
        ConfigError if the file is invalid."""
        path = directory / FILE
        try:
            known = decode(StoredIdentity, loads(path.read_bytes(), most=_MAX_OCTETS))
        except FileNotFoundError:
            return None
        except (OSError, WireError) as error:
            raise ConfigError(f"{path}: {error}; remove the file, and the agent registers again") from None
        return cls(path, known)

    @property
    def instance(self) -> int:
        """The id of the agent's instance."""
        return self.known.instance

    @property
    def key(self) -> str:
        """The public key that verifies new states."""
        return self.known.state_key

    def save(self) -> None:
        """Store the identity. When this method returns, the identity is on disk. Raises ConfigError."""
        self._write(self._path, dumps(self.known) + b"\n")

    def verify(self, signature: bytes, octets: bytes) -> bool:
        """Return whether the signature of a new state was made with the present key."""
        return verifies(self.known.state_key, signature, octets)

    def remembers(self, signature: bytes, octets: bytes) -> bool:
        """Return whether a state that was accepted before has a valid signature. The signature may have been made with
        the present key or with the former key."""
        former = self.known.former_key
        return self.verify(signature, octets) or (former != "" and verifies(former, signature, octets))

    def follow(self, key: str) -> None:
        """Store the public key that a state announces. This key verifies later states. If `key` is empty or is the
        present key, do nothing.

        Raises ConfigError.
        """
        if key not in {"", self.known.state_key}:
            before, self.known = self.known, StoredIdentity(self.known.instance, key, self.known.state_key)
            try:
                self.save()
            except ConfigError:
                self.known = before
                raise


def verifies(key: str, signature: bytes, octets: bytes) -> bool:
    """Return whether an Ed25519 signature over octets is valid (RFC 8032). key: the public key, 32 octets in base64."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(signature, octets)
    except (InvalidSignature, ValueError):
        return False
    return True


def enrol(directory: Path, posts: ServiceClient, ring: KeyRing) -> Identity:
    """Register the machine, exchange the enrolment key for the agent's own key, and return the identity.

    If the agent is registered already, return the stored identity. If the agent crashed during the registration, it
    registers again, and the service recognizes the machine. Raises ServiceAway, ServiceRefused, ConfigError.
    """
    known = Identity.load(directory)
    if known is not None and ring.enrolment_key is None:
        return known
    key = ring.enrolment_key or ring.key
    answer = posts.post(REGISTER, _machine(), key=key)
    try:
        registered = StoredIdentity(int(str(answer.get("instanceId"))), str(answer.get("stateKey")))
        registered = decode(StoredIdentity, mapping(registered))
    except (ValueError, WireError):
        raise ServiceAway("the answer is not from the service: it does not contain the id of the instance") from None
    ring.enrol({"instanceId": registered.instance})
    made = Identity(directory / FILE, registered)
    made.save()
    return made


def _machine() -> dict[str, object]:
    """Return the body of the registration request."""
    return {
        "instanceName": socket.gethostname()[:253],
        "hostName": socket.gethostname()[:253],
        "osId": _LINUX,
        "privateIp": _address(),
        "machineId": _machine_id(),
        "agentVersion": __version__,
    }


def _machine_id() -> str:
    """Return a stable id of this machine, or an empty text if there is none. The id is a hash of machine-id(5), because
    the machine-id itself is confidential."""
    try:
        text = _MACHINE_ID.read_bytes().strip()
    except OSError:
        text = b""
    return hashlib.sha256(_APPLICATION + text).hexdigest()[:32] if text else ""


def _address() -> str:
    """Return the source address of outgoing connections according to the routing table, or an empty text if there is no
    route."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((target, 9))  # connect(2) of a UDP socket sends nothing
                return str(sock.getsockname()[0])
        except OSError:
            continue
    return ""

"""Which instance the agent is, and by which key it knows the service's states: told by the service when it registers.

It is kept beside the agent's memory. An agent that has lost it registers again, by the key of its own.
"""

import base64
import binascii
import hashlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from sallyport.agent import disk
from sallyport.agent.endpoint.agent import Identity
from sallyport.agent.endpoint.version import own_version
from sallyport.agent.keys import KeyRing, Posts
from sallyport.base.agentwire.fields import Number
from sallyport.base.errors import ConfigError, ServiceAway, WireError
from sallyport.base.wire import Text, decode, dumps, loads

REGISTER: Final = "/api/v1/machine/add-machine"
FILE: Final = "identity.json"
_LINUX: Final = 1
_MOST: Final = 10_000
_MACHINE_ID: Final = Path("/etc/machine-id")
_APPLICATION: Final = b"sallyport agent endpoint\0"


@dataclass(frozen=True, slots=True)
class Known:
    """What the service told. state_key: 32 octets in base64."""

    instance: Number
    state_key: Annotated[str, Text(64, "[A-Za-z0-9+/=]{44}", "an Ed25519 key in base64")]


def identity(directory: Path) -> Identity | None:
    """Who the agent is; None before it has registered. ConfigError: the file is none."""
    path = directory / FILE
    try:
        known = decode(Known, loads(path.read_bytes(), most=_MOST))
    except FileNotFoundError:
        return None
    except (OSError, WireError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return Identity(known.instance, verifier(known.state_key))


def enrol(directory: Path, posts: Posts, ring: KeyRing) -> Identity:
    """Register, and have a key of the agent's own in the file. ServiceAway, ServiceRefused, ConfigError.

    After a crash at any place it is done once more, which the service takes for the same machine.
    """
    known = identity(directory)
    if known is not None and ring.enrolment_key is None:
        return known
    key = ring.enrolment_key or ring.key
    answer = posts.post(REGISTER, _machine(), key=key)
    try:
        told = Known(int(str(answer.get("instanceId"))), str(answer.get("stateKey")))
        told = decode(Known, {"instance": told.instance, "stateKey": told.state_key})
    except (ValueError, WireError):
        raise ServiceAway("what answers is not the service: it does not say which instance this is") from None
    ring.enrol({"instanceId": told.instance})
    disk.write(directory / FILE, dumps(told) + b"\n")
    return Identity(told.instance, verifier(told.state_key))


def verifier(key: str) -> Callable[[bytes, bytes], bool]:
    """Whether a signature is the service's for octets, by its Ed25519 key in base64 (RFC 8032). ConfigError."""
    try:
        public = base64.b64decode(key, validate=True)
    except binascii.Error:
        raise ConfigError("a state key that is none") from None

    def verify(signature: bytes, octets: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, octets)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verify


def _machine() -> dict[str, object]:
    """The host, as it registers."""
    return {
        "instanceName": socket.gethostname()[:253],
        "hostName": socket.gethostname()[:253],
        "osId": _LINUX,
        "privateIp": _address(),
        "machineId": _machine_id(),
        "agentVersion": own_version(),
    }


def _machine_id() -> str:
    """Tells this machine from others. machine-id(5) is confidential, so a hash of it goes out."""
    try:
        text = _MACHINE_ID.read_bytes().strip()
    except OSError:
        text = b""
    return hashlib.sha256(_APPLICATION + text).hexdigest()[:32] if text else ""


def _address() -> str:
    """The address by which the host reaches others, as far as it knows without asking them; or empty."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((target, 9))  # nothing is sent
                return str(sock.getsockname()[0])
        except OSError:
            continue
    return ""

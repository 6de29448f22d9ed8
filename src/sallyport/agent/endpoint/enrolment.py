"""Registration: the service answers with the agent's instance and the public key of its states.

An agent that has lost its identity registers again, with its own key.
"""

import hashlib
import socket
from pathlib import Path
from typing import Final

from sallyport.agent.endpoint.identity import FILE, Identity, Known, own_version
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.base.errors import ServiceAway, WireError
from sallyport.base.wire import decode, mapping

REGISTER: Final = "/api/v1/machine/add-machine"
_LINUX: Final = 1
_MACHINE_ID: Final = Path("/etc/machine-id")
_APPLICATION: Final = b"sallyport agent endpoint\0"


def enrol(directory: Path, posts: ServiceClient, ring: KeyRing) -> Identity:
    """Register, and exchange the enrolment key for a key of the agent's own. ServiceAway, ServiceRefused, ConfigError.

    After a crash it is repeated, and the service finds the same machine.
    """
    known = Identity.load(directory)
    if known is not None and ring.enrolment_key is None:
        return known
    key = ring.enrolment_key or ring.key
    answer = posts.post(REGISTER, _machine(), key=key)
    try:
        registered = Known(int(str(answer.get("instanceId"))), str(answer.get("stateKey")))
        registered = decode(Known, mapping(registered))
    except (ValueError, WireError):
        raise ServiceAway("what answers is not the service: it does not say which instance this is") from None
    ring.enrol({"instanceId": registered.instance})
    made = Identity(directory / FILE, registered)
    made.save()
    return made


def _machine() -> dict[str, object]:
    """Return the body of the registration."""
    return {
        "instanceName": socket.gethostname()[:253],
        "hostName": socket.gethostname()[:253],
        "osId": _LINUX,
        "privateIp": _address(),
        "machineId": _machine_id(),
        "agentVersion": own_version(),
    }


def _machine_id() -> str:
    """Return a stable id of this machine: a hash, since machine-id(5) is confidential."""
    try:
        text = _MACHINE_ID.read_bytes().strip()
    except OSError:
        text = b""
    return hashlib.sha256(_APPLICATION + text).hexdigest()[:32] if text else ""


def _address() -> str:
    """Return the host's address for outgoing connections, by its routing table; or empty."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((target, 9))  # nothing is sent
                return str(sock.getsockname()[0])
        except OSError:
            continue
    return ""

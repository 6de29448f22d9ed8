"""Registration: the service tells which instance the agent is, and by which key it knows the service's states.

An agent that has lost what it was told registers again, by the key of its own.
"""

import hashlib
import socket
from pathlib import Path
from typing import Final

from sallyport.agent.endpoint.identity import FILE, Identity, Known
from sallyport.agent.endpoint.version import own_version
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.base.errors import ServiceAway, WireError
from sallyport.base.wire import decode, mapping

REGISTER: Final = "/api/v1/machine/add-machine"
_LINUX: Final = 1
_MACHINE_ID: Final = Path("/etc/machine-id")
_APPLICATION: Final = b"sallyport agent endpoint\0"


def enrol(directory: Path, posts: ServiceClient, ring: KeyRing) -> Identity:
    """Register, and have a key of the agent's own in the file. ServiceAway, ServiceRefused, ConfigError.

    After a crash at any place it is done once more, which the service takes for the same machine.
    """
    known = Identity.load(directory)
    if known is not None and ring.enrolment_key is None:
        return known
    key = ring.enrolment_key or ring.key
    answer = posts.post(REGISTER, _machine(), key=key)
    try:
        told = Known(int(str(answer.get("instanceId"))), str(answer.get("stateKey")))
        told = decode(Known, mapping(told))
    except (ValueError, WireError):
        raise ServiceAway("what answers is not the service: it does not say which instance this is") from None
    ring.enrol({"instanceId": told.instance})
    made = Identity(directory / FILE, told)
    made.save()
    return made


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

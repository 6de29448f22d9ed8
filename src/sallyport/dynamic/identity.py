"""Which octets name a session to its NAS (RFC 5176 section 3), and which names a user's sessions have.

Few attributes are sent: a NAS refuses what it does not know, as hostapd does NAS-Port, and whatever differs from what
it has. An Acct-Session-Id is always there. A session without a station is told by its port and address too.
"""

import ipaddress
from collections.abc import Sequence

from sallyport.domains.domain import Domain
from sallyport.dynamic.repo import Target
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLING_STATION_ID,
    CHARGEABLE_USER_IDENTITY,
    FRAMED_INTERFACE_ID,
    FRAMED_IP_ADDRESS,
    FRAMED_IPV6_PREFIX,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT,
    USER_NAME,
    push_attribute,
)

MAX_VALUE = 253
NAMING = frozenset({USER_NAME, FRAMED_IP_ADDRESS, CHARGEABLE_USER_IDENTITY, FRAMED_INTERFACE_ID, FRAMED_IPV6_PREFIX})
"""What an answer to a login may carry, but a CoA-Request only to name the session (RFC 5176 section 3.6, note 1)."""


def identify(target: Target) -> bytes:
    """The attributes of a session and of its NAS, in octets."""
    pairs = [*_nas(target), (USER_NAME, (target.user_name or "").encode()), (ACCT_SESSION_ID, target.acct_session_id)]
    if target.station:
        pairs.append((CALLING_STATION_ID, target.station.encode()))
    else:
        pairs.append((NAS_PORT, b"" if target.nas_port is None else target.nas_port.to_bytes(4)))
        pairs.append((FRAMED_IP_ADDRESS, ipaddress.ip_address(target.framed_ip).packed if target.framed_ip else b""))
    return b"".join(push_attribute(kind, value) for kind, value in pairs if 0 < len(value) <= MAX_VALUE)


def _nas(target: Target) -> list[tuple[int, bytes]]:
    """What the NAS calls itself. An address that is where its packets come from may not be one that it has told; it
    has then told another name (RFC 2866 section 4.1)."""
    name = target.nas_identifier.encode()
    if name and target.client_ip == target.ip_address:
        return [(NAS_IDENTIFIER, name)]
    address = ipaddress.ip_address(target.client_ip)
    kind = NAS_IP_ADDRESS if address.version == 4 else NAS_IPV6_ADDRESS
    return [(kind, address.packed), (NAS_IDENTIFIER, name)]


def qualified(user: str, domain: Domain) -> Sequence[str]:
    r"""A domain's user as a device names it anywhere in the tenant: `user@realm` and `REALM\user`."""
    realms = (domain.name, *domain.realms)
    return [*(f"{user}@{realm}" for realm in realms), *(f"{realm}\\{user}" for realm in realms)]

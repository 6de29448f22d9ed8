"""The octets that name a session to its NAS (RFC 5176 section 3), and the names of a user's sessions.

Few attributes are sent: a NAS refuses unknown ones, as hostapd refuses NAS-Port, and any that differs from its own. An
Acct-Session-Id is always there. A session without a station is named by its port and address too.
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
"""Attributes of an Access-Accept that a CoA-Request has only to name the session (RFC 5176 section 3.6, note 1)."""


def identify(target: Target) -> bytes:
    """Return the attributes of a session and of its NAS, in octets."""
    pairs = [*_nas(target), (USER_NAME, (target.user_name or "").encode()), (ACCT_SESSION_ID, target.acct_session_id)]
    if target.station:
        pairs.append((CALLING_STATION_ID, target.station.encode()))
    else:
        pairs.append((NAS_PORT, b"" if target.nas_port is None else target.nas_port.to_bytes(4)))
        pairs.append((FRAMED_IP_ADDRESS, ipaddress.ip_address(target.framed_ip).packed if target.framed_ip else b""))
    return b"".join(push_attribute(kind, value) for kind, value in pairs if 0 < len(value) <= MAX_VALUE)


def _nas(target: Target) -> list[tuple[int, bytes]]:
    """Return the NAS's names. If its address equals the source of its packets, the NAS may not have sent it; it has
    sent another name then (RFC 2866 section 4.1)."""
    name = target.nas_identifier.encode()
    if name and target.client_ip == target.ip_address:
        return [(NAS_IDENTIFIER, name)]
    address = ipaddress.ip_address(target.client_ip)
    kind = NAS_IP_ADDRESS if address.version == 4 else NAS_IPV6_ADDRESS
    return [(kind, address.packed), (NAS_IDENTIFIER, name)]


def qualified(user: str, domain: Domain) -> Sequence[str]:
    r"""Return the names of a domain's user as devices send them anywhere in the tenant: `user@realm` and
    `REALM\user`."""
    realms = (domain.name, *domain.realms)
    return [*(f"{user}@{realm}" for realm in realms), *(f"{realm}\\{user}" for realm in realms)]

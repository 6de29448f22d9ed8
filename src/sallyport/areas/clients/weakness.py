"""Weaknesses of RADIUS clients, as messages that show no secret. A weakness is only a warning: the client still
works."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sallyport.base.addresses import Network

if TYPE_CHECKING:  # the command line uses this module for a clients.conf without importing trio
    from sallyport.areas.clients.client import Client
    from sallyport.areas.clients.issued import Issued

SHORT_SECRET: Final = 16  # RFC 2865 section 3: "at least 16 octets"
WIDE: Final = {4: 8, 6: 32}  # a prefix of this length or shorter gets a warning
NEVER_LATCHES: Final = "require_message_authenticator is auto, which has no effect for a network; set yes or no"
_FAMOUS: Final = (b"testing123", b"secret", b"sharedsecret", b"radius", b"password", b"cisco", b"changeme", b"radsec")


def of_secret(secret: bytes) -> str:
    """Return the weakness of a secret as text, such as "is shorter than 16 octets". Return an empty string if there is
    none."""
    if secret.lower() in _FAMOUS or secret.startswith(b"testing123"):
        return "is a well-known example secret"
    if len(secret) < SHORT_SECRET:
        return f"is shorter than {SHORT_SECRET} octets"
    if len(set(secret)) < SHORT_SECRET // 2:
        return "repeats a few octets"
    return ""


def of_width(network: Network) -> str:
    """Return a warning if a network is very wide, otherwise an empty string."""
    if network.prefixlen == 0:
        return "the network contains all addresses, so other tenants cannot register any"
    return "the network is very wide" if network.prefixlen <= WIDE[network.version] else ""


def of_client(client: Client) -> list[str]:
    """Return a line for each weakness of a client."""
    secret, width = of_secret(client.secret.octets), of_width(client.network)
    found = [f"the secret {secret}"] if secret else []
    if width:
        found.append(width)
    if client.shadow:
        found.append("shadow is set: requests are recorded as copies, and never answered")
    signatures = client.require_message_authenticator.value
    if signatures == "no":
        found.append("require_message_authenticator is no: unsigned requests are accepted")
    elif signatures == "auto" and client.network.num_addresses > 1:
        found.append(NEVER_LATCHES)
    if client.limit_proxy_state.value == "no" and not client.signature_required:
        found.append("limit_proxy_state is no: unsigned requests with Proxy-State are accepted")
    return found


def of_certificate(client: Client, issued: Issued) -> list[str]:
    """Check the TLS name and the TLS fingerprint of a client. Return a line for each of them that was not issued for
    the client's tenant."""
    found = []
    for field, value, owners in (
        ("tls_name", client.tls_name, issued.by_name),
        ("tls_fingerprint", client.tls_fingerprint, issued.by_fingerprint),
    ):
        if value and owners.get(value) is None:
            found.append(
                f"{field} is not from `cert issue` for this tenant, although the installation has several tenants"
            )
        elif value and owners[value] != client.tenant_id:
            found.append(f"{field} was issued for another tenant: RadSec rejects the certificate")
    return found


def enclosing(networks: Iterable[Network]) -> dict[Network, list[Network]]:
    """Return each network that contains other networks of the input. The value lists the networks directly inside it.
    The order is that of the input."""
    known = dict.fromkeys(networks)
    lengths = sorted({network.prefixlen for network in known}, reverse=True)
    found: dict[Network, list[Network]] = {}
    for network in known:
        around = (network.supernet(new_prefix=length) for length in lengths if length < network.prefixlen)
        closest = next((other for other in around if other in known), None)
        if closest is not None:
            found.setdefault(closest, []).append(network)
    return found

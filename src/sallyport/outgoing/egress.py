"""Where the service may connect to: the setting `egress`, held against the address that is connected to.

A tenant names hosts; what they resolve to is decided by whoever owns their DNS, anew for each look-up. So a name is
resolved once for each connection, the addresses are checked, and the connection is made to a checked address.

How long a look-up takes they decide too, and it takes a thread until its end, whether anybody still waits or not. So
each tenant has threads of its own for it: names that nobody answers for leave all others, and the store, theirs.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import trio

from sallyport.base.config import Network
from sallyport.outgoing.errors import ProviderError

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# RFC 6052 section 2.1: a gateway turns these into the IPv4 address of their last 32 bits.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
AT_ONCE: Final = 16
"""Look-ups of one tenant that are under way; the others wait."""

LookUp: TypeAlias = Callable[[str, int, socket.SocketKind], Sequence[str]]


def look_up(host: str, port: int, kind: socket.SocketKind) -> list[str]:
    """The addresses of a host, the system's favourite first; it blocks for as long as the name's servers take their
    time. OSError, UnicodeError."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=kind)]


class Egress:
    """The networks that may be connected to. networks: None for all but link-local addresses, where clouds keep the
    credentials of their machines. look_up: the DNS."""

    def __init__(self, networks: Sequence[Network] | None, look_up: LookUp = look_up) -> None:
        self._networks = None if networks is None else tuple(networks)
        self._look_up = look_up
        self._threads = trio.CapacityLimiter(AT_ONCE)

    def apart(self) -> Egress:
        """The same for another tenant, with look-ups of its own."""
        return Egress(self._networks, self._look_up)

    def allows(self, address: str) -> bool:
        """Whether an IP address in text may be connected to. One that carries an IPv4 address counts as that."""
        try:
            reached = _reached(ipaddress.ip_address(address))
        except ValueError:
            return False
        if self._networks is None:
            return not reached.is_link_local
        return any(reached in network for network in self._networks)

    async def resolve(self, host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[str]:
        """The addresses of a host that may be connected to, the system's favourite first.

        ProviderError: the name has no address, or none that is allowed.
        """
        try:
            found = [host] if _is_address(host) else await self._named(host, port, kind)
        except (OSError, UnicodeError):
            raise ProviderError(f"{host}: the name has no address") from None
        allowed = [address for address in dict.fromkeys(found) if self.allows(address)]
        if not allowed:
            raise ProviderError(f"{host}: not in a network that the service may connect to (SALLYPORT_EGRESS)")
        return allowed

    async def _named(self, host: str, port: int, kind: socket.SocketKind) -> Sequence[str]:
        return await trio.to_thread.run_sync(
            self._look_up, host, port, kind, abandon_on_cancel=True, limiter=self._threads
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _reached(address: _IPAddress) -> _IPAddress:
    """The address at which a connection to this one ends."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address

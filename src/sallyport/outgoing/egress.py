"""The setting `egress`: the networks to which the service may connect.

Tenants configure host names. The owner of a name decides at each look-up to which addresses the name resolves.
Therefore the service resolves a name only once for each connection. It checks the addresses, and connects to one of the
checked addresses.

A tenant sees only `address not allowed`. The log and the commands of the installation show which network must be added
to the setting.

A look-up occupies a thread until it ends. Each tenant has its own limit of concurrent look-ups, so that slow names
delay neither other tenants nor the store.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

import structlog
import trio

from sallyport.base.bounded import BoundedMap
from sallyport.base.fair import LoopTurns
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError
from sallyport.settings.values import EGRESS_DEFAULT, EgressRule

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# RFC 6052 section 2.1: a gateway translates these to the IPv4 address in their last 32 bits.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
NOT_BY_DEFAULT: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host (RFC 1122 section 3.2.1.3)
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; metadata service of most clouds
        "100.100.100.200/32",  # metadata: Alibaba
        "168.63.129.16/32",  # metadata: Azure
        "192.0.0.192/32",  # metadata: Oracle
        "::/96",  # unspecified, loopback, IPv4-compatible
        "fe80::/10",
        "fd00:ec2::/32",  # metadata: AWS
        "fd20:ce::254/128",  # metadata: Google
        "2001::/32",  # Teredo: carries IPv4 addresses
        "2002::/16",  # 6to4: carries an IPv4 address
        "64:ff9b:1::/48",  # local NAT64 (RFC 8215): carries an IPv4 address at a varying position
    )
)
AT_ONCE: Final = 16
"""Maximum number of concurrent look-ups of one tenant; further look-ups wait."""
MAX_ADDRESSES: Final = 16
"""Maximum number of a host's addresses that are checked. A name can have 4,000 addresses, and checking so many takes 55
ms."""
TURNS: Final = 4
"""Maximum number of answers that are read in one pass of the event loop. Most answers take less than a millisecond."""
DENIED_HOSTS: Final = 64
"""Maximum number of denied hosts that are remembered for one tenant."""
HANDSHAKES: Final = 4
"""Maximum number of one tenant's TLS handshakes that compute at the same time (`outgoing.tls`)."""

LookUp: TypeAlias = Callable[[str, int, socket.SocketKind], Sequence[str]]

log = structlog.get_logger()


def look_up(host: str, port: int, kind: socket.SocketKind) -> list[str]:
    """Return the addresses of a host, in the order that the system prefers. The call blocks until the DNS answers.

    Raises OSError, UnicodeError.
    """
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=kind)]


class Egress:
    """The networks to which the service may connect.

    look_up: a function that resolves a name. turns: a limit for the number of answers that the service reads in one
    pass of the event loop.
    """

    def __init__(
        self,
        rules: Sequence[EgressRule] = (EGRESS_DEFAULT,),
        look_up: LookUp = look_up,
        turns: LoopTurns | None = None,
    ) -> None:
        self._rules = list(rules)
        self._look_up = look_up
        self._threads = trio.CapacityLimiter(AT_ONCE)
        self._denied = BoundedMap[str, str](DENIED_HOSTS)
        self.handshakes = trio.CapacityLimiter(HANDSHAKES)
        self.sockets = Sockets()
        self.turns = turns or LoopTurns(TURNS)

    def for_tenant(self) -> Egress:
        """Return an Egress for a tenant. It has the same rules, and its own limits of look-ups and sockets."""
        tenants = Egress((), self._look_up, self.turns.for_tenant())
        tenants._rules = self._rules
        return tenants

    def use(self, rules: Sequence[EgressRule]) -> None:
        """Set the rules of new connections, here and for all tenants. Connections that exist stay open."""
        self._rules[:] = rules

    def allows(self, address: str) -> bool:
        """Return whether the service may connect to an IP address in text form. An IPv4-mapped IPv6 address counts as
        IPv4.

        Raises OSError if the kernel does not answer.
        """
        try:
            reached = _reached(address)
        except ValueError:
            return False
        if any(reached in network for network in self._rules if not isinstance(network, str)):
            return True
        if EGRESS_DEFAULT not in self._rules or any(reached in network for network in NOT_BY_DEFAULT):
            return False
        return not _is_own(reached)

    def check(self, host: str, addresses: Sequence[str]) -> list[str]:
        """Return only those addresses of a host to which the service may connect.

        Raises AddressNotAllowed if the service may connect to none of the addresses. An event in the log then names the
        networks that an admin must add to allow the host. Raises ProviderError if the kernel does not answer.
        """
        try:
            allowed = [address for address in addresses if self.allows(address)]
        except OSError as error:
            raise ProviderError(f"{host}: cannot read the routing table: {error.strerror}") from None
        if not allowed:
            missing = ", ".join(str(ipaddress.ip_network(_reached(address))) for address in addresses)
            if self._denied.get(host) != missing:
                log.warning("egress_denied", host=host, setting="SALLYPORT_EGRESS", add=missing)
            self._denied.put(host, missing)
            raise AddressNotAllowed(missing)
        return allowed

    def advice(self) -> list[str]:
        """Return a line for each host to which a connection was recently denied. The line names the networks that an
        admin must add to allow the host.

        Never show these lines to a tenant.
        """
        return [f"{host}: {AddressNotAllowed(missing).advice}" for host, missing in self._denied.items()]

    async def resolve(self, host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[str]:
        """Return the addresses of a host to which the service may connect, in the order that the system prefers.

        Raises ProviderError if the name has no address. Raises AddressNotAllowed if no address is allowed.
        """
        try:
            found = [host] if is_address(host) else await self._named(host, port, kind)
        except (OSError, UnicodeError):
            why = "the name has no address; check its spelling, and the DNS of this machine"
            raise ProviderError(f"{host}: {why}") from None
        return self.check(host, list(dict.fromkeys(found))[:MAX_ADDRESSES])

    async def connect(self, host: str, port: int) -> trio.SocketStream:
        """Return a TCP stream to a host. Try its allowed addresses one after another, until one answers. Each attempt
        gets an equal part of the time until the deadline of the caller. Raises OSError, ProviderError."""
        addresses = await self.resolve(host, port)
        for left in range(len(addresses), 1, -1):
            share_s = (trio.current_effective_deadline() - trio.current_time()) / left
            with suppress(OSError), trio.move_on_after(max(share_s, 0.0)):
                return await self.sockets.connect(addresses[-left], port)
        return await self.sockets.connect(addresses[-1], port)

    async def _named(self, host: str, port: int, kind: socket.SocketKind) -> Sequence[str]:
        return await trio.to_thread.run_sync(
            self._look_up, host, port, kind, abandon_on_cancel=True, limiter=self._threads
        )


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _reached(text: str) -> _IPAddress:
    """Return the address that a packet reaches if it is sent to `text`. An IPv4-mapped address and an address with the
    NAT64 prefix become an IPv4 address. The scope of an IPv6 address is dropped.

    Raises ValueError if the text is not an IP address.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return ipaddress.IPv6Address(int(address))  # drops the scope (%eth0)


def _is_own(address: _IPAddress) -> bool:
    """Return whether the kernel delivers packets for an address to this machine, and not to one other machine. Also
    return True if the kernel sends such packets by broadcast or multicast.

    The routing table decides this (rtnetlink(7)). Therefore the answer is also right for addresses that the machine
    gets later. A call takes 20 microseconds.
    """
    destination = address.packed
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    route = struct.pack("=8BI", family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)  # struct rtmsg
    route += struct.pack("=HH", 4 + len(destination), _RTA_DST) + destination
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as netlink:
        netlink.sendto(struct.pack("=IHHII", 16 + len(route), _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0) + route, (0, 0))
        answer = netlink.recv(4096)
    message_type: int
    route_type: int
    message_type, route_type = struct.unpack_from("=4xH17xB", answer)
    return message_type == _RTM_NEWROUTE and route_type != _RTN_UNICAST  # without a route, no connection is possible


_NLM_F_REQUEST: Final = 1
_RTM_NEWROUTE: Final = 24
_RTM_GETROUTE: Final = 26
_RTA_DST: Final = 1
_RTN_UNICAST: Final = 1


MAX_SOCKETS: Final = 4096
_AT_ONCE: Final = 64
"""Number of idle connections that are closed at the same time when no socket is left."""


class Idle(Protocol):
    """An idle connection that is kept for a later request."""

    def close(self) -> None:
        """Close the socket of the connection."""


class Sockets:
    """The sockets of one tenant's connections. At most `most` sockets are open at the same time.

    A tenant has up to a thousand domains, and each domain has servers and pools of connections. Without a common limit,
    these connections could use all file descriptors of the service.

    idle: the connections that can be closed when the limit is reached, the oldest first.
    """

    def __init__(self, most: int = MAX_SOCKETS) -> None:
        self._most = most
        self._open: set[socket.socket] = set()
        self.idle: OrderedDict[Idle, None] = OrderedDict()

    def open(self, address: str, kind: socket.SocketKind) -> socket.socket:
        """Return a new non-blocking socket for an IP address. Raises OSError if too many sockets are open."""
        while len(self._open) >= self._most:
            self._make_room()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        opened = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._open.add(opened)
        return opened

    async def connect(self, address: str, port: int) -> trio.SocketStream:
        """Return a TCP stream to an IP address. Raises OSError."""
        connecting = trio.socket.from_stdlib_socket(self.open(address, socket.SOCK_STREAM))
        try:
            await connecting.connect((address, port))
        except BaseException:
            connecting.close()
            raise
        return trio.SocketStream(connecting)

    def _make_room(self) -> None:
        self._open = {each for each in self._open if each.fileno() >= 0}
        if len(self._open) < self._most:
            return
        if not self.idle:
            raise OSError(errno.EMFILE, "the tenant has too many connections")
        for _ in range(min(_AT_ONCE, len(self.idle))):
            self.idle.popitem(last=False)[0].close()

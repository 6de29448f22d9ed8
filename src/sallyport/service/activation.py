"""The sockets that systemd has opened for the service (sd_listen_fds(3), systemd.socket(5)).

systemd keeps such a socket open while the service restarts. Datagrams and connections that arrive meanwhile wait in the
socket. The service finds each socket by its address in the settings, so the names of the descriptors have no meaning.
"""

import ipaddress
import os
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from sallyport.base.errors import StartError
from sallyport.settings.values import Address

FIRST: Final = 3
"""The descriptor of the first socket (SD_LISTEN_FDS_START)."""
REMEDY: Final = "run `sudo sallyport server install`, then: sudo systemctl restart sallyport.socket sallyport.service"

_Key: TypeAlias = tuple[bool, ipaddress.IPv4Address | ipaddress.IPv6Address, int]
"""Whether a socket is of TCP, its address and its port."""


def passed_sockets(environ: Mapping[str, str]) -> list[socket.socket]:
    """Return the sockets that systemd has passed to this process. Raises StartError if a descriptor is no IP socket."""
    count = environ.get("LISTEN_FDS", "")
    if environ.get("LISTEN_PID") != str(os.getpid()) or not count.isdecimal():
        return []
    found = list[socket.socket]()
    for descriptor in range(FIRST, FIRST + int(count)):
        try:
            os.set_inheritable(descriptor, False)
            sock = socket.socket(fileno=descriptor)
        except OSError as error:
            raise StartError(f"LISTEN_FDS: descriptor {descriptor} is no socket: {error.strerror}") from None
        if sock.family not in {socket.AF_INET, socket.AF_INET6}:
            raise StartError(f"LISTEN_FDS: the socket {descriptor} has neither an IPv4 nor an IPv6 address")
        sock.setblocking(False)
        found.append(sock)
    return found


class PassedSockets:
    """The sockets of systemd that no setting has taken yet."""

    def __init__(self, sockets: Sequence[socket.socket] = ()) -> None:
        self._left = defaultdict[_Key, list[socket.socket]](list)
        for sock in sockets:
            self._left[_key(Address(*sock.getsockname()[:2]), sock.type)].append(sock)

    def take(self, setting: str, address: Address, kind: socket.SocketKind, count: int = 1) -> list[socket.socket]:
        """Return the sockets of an address, or an empty list if systemd has passed none.

        count: how many processes need a socket of their own. Raises StartError if systemd has passed another number, or
        a socket that the service cannot use.
        """
        found = self._left.pop(_key(address, kind), [])
        if not found:
            return []
        where = f"setting {setting}: the socket of systemd for {address} ({_protocol(kind)})"
        if len(found) != count:
            raise StartError(
                f"{where} exists {len(found)} times, not {count} times, once for each of the `workers`; {REMEDY}"
            )
        for sock in found:
            if sock.family == socket.AF_INET6 and not sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
                raise StartError(f"{where} accepts IPv4 too: set BindIPv6Only=ipv6-only in its unit")
            if kind == socket.SOCK_STREAM and not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                raise StartError(f"{where} does not listen: use ListenStream= in its unit")
        return found

    def check(self, addresses: Iterable[tuple[str, Address, socket.SocketKind]]) -> None:
        """Check that each socket has an address of the settings. Otherwise its datagrams would wait without an answer.

        addresses: see `Settings.addresses`. Raises StartError.
        """
        known = {_key(address, kind) for _, address, kind in addresses}
        for sockets in (each for key, each in self._left.items() if key not in known):
            address, kind = Address(*sockets[0].getsockname()[:2]), sockets[0].type
            raise StartError(
                f"systemd has passed a socket for {address} ({_protocol(kind)}), but no setting has this address; "
                f"{REMEDY}"
            )


def _key(address: Address, kind: int) -> _Key:
    return kind == socket.SOCK_STREAM, ipaddress.ip_address(address.host), address.port


def _protocol(kind: int) -> str:
    return "TCP" if kind == socket.SOCK_STREAM else "UDP"

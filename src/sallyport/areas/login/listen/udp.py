"""RADIUS over UDP.

Each time a socket becomes readable (a wake-up), up to 64 datagrams are read by non-blocking calls. A task or an awaited
call for each datagram would cost more than the whole decision. All datagrams are read before the first one is
processed. Otherwise the code of the kernel and the code of the service would displace each other from the processor's
caches.

If more datagrams have arrived, they are read into a queue. From the queue, tenants are served in turn. The sources of a
tenant are also served in turn. So a thousand logins of one tenant do not delay the logins of another tenant. All
senders without a RADIUS client count as one tenant. The kernel's buffer cannot be fair, because it is first in, first
out. Therefore the buffer is emptied at each wake-up. Datagrams above the limit of the queue are dropped here.

A socket may be bound to all addresses of a machine. Then the kernel tells the destination address of each datagram (RFC
3542 section 6; for IPv4 Linux ip(7)). The answer is sent from this address, because a NAS drops an answer from another
address.
"""

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from sallyport.base.clock import Clock, now_us
from sallyport.base.fair import FairShares
from sallyport.radius.duplicates import Source
from sallyport.settings.listening import cannot_listen
from sallyport.settings.values import Address

DRAIN = 64
AHEAD = 8192
PASS_S, MIN_READ = 0.005, 8
"""Time in seconds that the datagrams of one pass of the event loop should take while others wait in the queue, and the
minimum number of datagrams of a pass. The first part of a login with a second factor takes several times as long as a
password login that is decided at once. With 64 of them in each pass, password logins waited for seconds."""
RECEIVE_BUFFER = 4 << 20  # with the kernel's default size, bursts are lost
# One octet more than the maximum length of a packet, so that a longer packet is detected instead of truncated.
DATAGRAM = 4097

# Constants of RFC 3542 and Linux ip(7) that the socket module does not define.
IP_PKTINFO: Final = 8
IPV6_RECVPKTINFO: Final = 49
IPV6_PKTINFO: Final = 50
ANCILLARY: Final = socket.CMSG_SPACE(20)

Datagram = tuple[bytes, Source, int, float]
"""A datagram: its octets, its source, and its time of arrival. The time is given in microseconds of the wall clock, and
in seconds of the monotonic clock."""


def bind(address: Address, setting: str, *, shared: bool = False) -> socket.socket:
    """Return a non-blocking UDP socket that is bound to an address. Raises StartError with the address and its setting.

    shared: whether other sockets of the same user may be bound to the address too. setting: the name of the setting
    with the address.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        prepare(sock, address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        sock.bind(tuple(address))
    except OSError as error:
        sock.close()
        raise cannot_listen(setting, address, socket.SOCK_DGRAM, error) from error
    return sock


def prepare(sock: socket.socket, address: Address) -> socket.socket:
    """Set the options of a UDP socket for an address, and return the socket. The receive buffer is only enlarged."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, _is_wildcard(address.host))
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, _is_wildcard(address.host))
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) < RECEIVE_BUFFER:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        with suppress(OSError):  # exceeds the system's limit if the process has the privilege to do so
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), RECEIVE_BUFFER)
    return sock


def sender(sock: socket.socket) -> Callable[[bytes, Source], None]:
    """Return a function that sends a reply without waiting. If the kernel does not accept the reply, it is lost. A
    retransmission of the request gets it again."""

    sendto, sendmsg = sock.sendto, sock.sendmsg
    control = (socket.IPPROTO_IPV6, IPV6_PKTINFO) if sock.family == socket.AF_INET6 else (socket.IPPROTO_IP, IP_PKTINFO)

    def send(reply: bytes, to: Source) -> None:
        try:  # noqa: SIM105  a context manager costs half a microsecond, for every reply
            sendto(reply, to)
        except OSError:
            pass

    def send_from(reply: bytes, to: Source) -> None:
        try:  # noqa: SIM105
            sendmsg((reply,), ((*control, to[2]),) if len(to) == 3 else (), 0, to[:2])
        except OSError:
            pass

    return send_from if _is_wildcard(sock.getsockname()[0]) else send


async def receive(
    sock: socket.socket,
    take: Callable[[list[Datagram]], None],
    taken: Callable[[], None],
    clock: Clock = now_us,
    *,
    owner: Callable[[Source], int],
    refuse: Callable[[bytes, Source, int], None],
    ahead: int = AHEAD,
) -> None:
    """Each time the socket becomes readable, pass the datagrams to `take`, and then call `taken`. Continue until
    cancelled.

    owner: a function that returns the id of the tenant to which a source belongs, or 0 if it belongs to no tenant.
    refuse: a function that is called with each dropped datagram. ahead: the maximum number of datagrams in the queue.
    If the queue is full and a tenant has used up its share, further datagrams of this tenant are dropped. A source is
    an address with its port, because a proxy may use a port for each NAS.
    """
    pull = _puller(sock)
    behind: FairShares[int, Source, Datagram] = FairShares(ahead)

    def read_ahead(at: int, now: float) -> None:
        for _ in range(ahead):
            octets, source = pull()
            if not behind.put(owner(source), source, (octets, source, at, now)):
                refuse(octets, source, at)

    most = DRAIN
    while True:
        was_ahead = bool(behind)
        await (trio.lowlevel.checkpoint() if was_ahead else trio.lowlevel.wait_readable(sock))
        at, now = clock(), time.monotonic()
        came: list[Datagram] = []
        with suppress(OSError):  # there are no more datagrams, or this is an ICMP error about an earlier reply
            if not was_ahead:
                for _ in range(DRAIN):
                    octets, source = pull()
                    came.append((octets, source, at, now))
            read_ahead(at, now)
        if was_ahead:
            came = [behind.take() for _ in range(min(most, len(behind)))]
        take(came)
        taken()
        took_s = time.monotonic() - now
        most = max(most // 2, MIN_READ) if took_s > PASS_S else min(most * 2, DRAIN)


def _puller(sock: socket.socket) -> Callable[[], tuple[bytes, Source]]:
    """Return a function that reads a datagram and its source."""
    recvfrom, recvmsg = sock.recvfrom, sock.recvmsg
    is_ipv6 = sock.family == socket.AF_INET6

    def pull() -> tuple[bytes, Source]:
        datagram, source = recvfrom(DATAGRAM)
        return datagram, source[:2] if is_ipv6 else source

    def pull_with_own_address() -> tuple[bytes, Source]:
        datagram, ancillary, _, source = recvmsg(DATAGRAM, ANCILLARY)
        own = own_address(ancillary[0][2]) if ancillary else b""
        return datagram, (source[0], source[1], own)

    return pull_with_own_address if _is_wildcard(sock.getsockname()[0]) else pull


def own_address(control: bytes) -> bytes:
    """Return the control message for an answer. It causes the kernel to send the answer from the address to which the
    datagram was sent.

    control: the control message of the datagram, a struct in_pktinfo or in6_pktinfo. The interface is removed from it,
    so that routing selects the interface. A link-local address keeps its interface, because such an address needs one.
    """
    if len(control) == 12:
        return bytes(4) + control[4:8] + bytes(4)
    link_local = control[0] == 0xFE and control[1] & 0xC0 == 0x80
    return control if link_local else control[:16] + bytes(4)


def _is_wildcard(host: str) -> bool:
    return host in {"0.0.0.0", "::"}


def receive_drops(sockets: Sequence[socket.socket]) -> list[int]:
    """Return how many datagrams the kernel has dropped for each socket. The numbers come from /proc/net/udp and udp6.
    An unknown number is returned as 0."""
    drops: dict[int, int] = {}
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                drops[int(fields[9])] = int(fields[12])
    return [drops.get(os.fstat(sock.fileno()).st_ino, 0) for sock in sockets]

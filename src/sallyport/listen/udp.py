"""RADIUS over UDP. A readable socket is drained by non-blocking calls, up to 64 datagrams a wake-up, since a task or
an awaited call for each datagram costs more than the whole decision."""

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import trio

from sallyport.base.clock import Clock, now_us
from sallyport.base.config import Address
from sallyport.base.errors import StartError

DRAIN = 64
RECEIVE_BUFFER = 4 << 20  # at the kernel's default, bursts are lost
# One octet more than a packet may have, so that a longer one is seen as such and not cut to size.
DATAGRAM = 4097

Receive = Callable[[bytes, tuple[str, int], int, float], None]


def bind(address: Address) -> socket.socket:
    """A non-blocking UDP socket on an address. StartError, naming it."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        with suppress(OSError):  # past the system's limit, where we may
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), RECEIVE_BUFFER)
        sock.bind(tuple(address))
    except OSError as error:
        sock.close()
        raise StartError(f"RADIUS on {address}: {error.strerror}") from error
    return sock


def has_family(address: Address) -> bool:
    """Whether this machine speaks the address's family at all: some have no IPv6."""
    if ":" not in address.host:
        return True
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    except OSError:
        return False
    return Path("/proc/net/if_inet6").exists()


def sender(sock: socket.socket) -> Callable[[bytes, tuple[str, int]], None]:
    """Sends a reply without waiting. One that the kernel does not take is lost; the retransmit gets it again."""

    sendto = sock.sendto

    def send(reply: bytes, to: tuple[str, int]) -> None:
        try:  # noqa: SIM105  a context manager costs half a microsecond, for every reply
            sendto(reply, to)
        except OSError:
            pass

    return send


async def receive(sock: socket.socket, take: Receive, taken: Callable[[], None], clock: Clock = now_us) -> None:
    """Hand every datagram to `take`, and tell `taken` after each wake-up, until cancelled."""
    recvfrom = sock.recvfrom
    is_ipv6 = sock.family == socket.AF_INET6
    while True:
        await trio.lowlevel.wait_readable(sock)
        at, now = clock(), time.monotonic()
        with suppress(OSError):  # the last: nothing more to read, or an ICMP error of an earlier reply
            for _ in range(DRAIN):
                datagram, source = recvfrom(DATAGRAM)
                take(datagram, source[:2] if is_ipv6 else source, at, now)
        taken()


def receive_drops(sockets: Sequence[socket.socket]) -> list[int]:
    """How many datagrams the kernel dropped for each socket, from /proc/net/udp and udp6; 0 where it cannot tell."""
    drops: dict[int, int] = {}
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                drops[int(fields[9])] = int(fields[12])
    return [drops.get(os.fstat(sock.fileno()).st_ino, 0) for sock in sockets]

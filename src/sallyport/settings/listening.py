"""Error messages for sockets that cannot be bound. A message names the setting with the address, and the process that
already uses the address.

Linux lists each socket in /proc/net with its inode and its user. The process is not listed there. It is found because
one of its file descriptors in /proc/PID/fd has this inode. Only root and the user of the process can read these file
descriptors.
"""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sallyport.base.errors import StartError
from sallyport.host.owner import user_name
from sallyport.settings.values import Address, environment_name

TCP_LISTEN: Final = 10
"""State of a listening TCP socket in /proc/net/tcp (TCP_LISTEN of linux/tcp_states.h)."""
NO_PROCESS: Final = "0"
"""The inode in /proc/net/tcp of a closed connection in the state TIME_WAIT, which prevents no bind (see `bound`)."""
UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
"""The file with the lowest port that every user may bind (Linux's ip-sysctl). It contains 1024 unless an admin has
changed it."""


class SocketOwner(NamedTuple):
    """The process that has a socket open. user_id: the user of the process. process_id: the id of the process; None if
    /proc denies access to it."""

    user_id: int
    process_id: int | None = None

    def __str__(self) -> str:
        if self.process_id is None:
            return f"a process of user {user_name(self.user_id)} (only root can see which one)"
        return process_name(self.process_id)


class _Entry(NamedTuple):
    """A socket in /proc/net/udp or /proc/net/tcp."""

    host: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    state: int
    user_id: int
    inode: str


def cannot_listen(setting: str, address: Address, kind: socket.SocketKind, error: OSError) -> StartError:
    """Return the error for a socket that cannot be bound. The message contains the setting, the address, the cause and
    the remedy."""
    variable, protocol = environment_name(setting), "UDP" if kind == socket.SOCK_DGRAM else "TCP"
    where = f"setting {setting}: cannot listen on {address} ({protocol})"
    if error.errno == errno.EADDRINUSE:
        held = holder(address, kind)
        if held is not None and held.process_id == os.getpid():
            return StartError(f"{where}: another setting of this service has the same address; change {variable}")
        return StartError(f"{where}: in use by {held or 'another process'}; stop it, or change {variable}")
    if error.errno == errno.EACCES and address.port < (lowest := lowest_unprivileged_port()):
        return StartError(
            f"{where}: only root may use a port below {lowest}; set {variable} to a higher port, or give the service "
            "the capability: AmbientCapabilities=CAP_NET_BIND_SERVICE and CapabilityBoundingSet=CAP_NET_BIND_SERVICE "
            "in its systemd unit"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return StartError(f"{where}: no interface of this machine has the address; change {variable}")
    return StartError(f"{where}: {os.strerror(error.errno) if error.errno else error}; change {variable}")


def bound(address: Address, kind: socket.SocketKind) -> socket.socket:
    """Return a socket that is bound to an address. A TCP socket also listens. Raises OSError if the bind fails."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_STREAM:  # closed connections in the state TIME_WAIT must not prevent the bind
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(tuple(address))
        if kind == socket.SOCK_STREAM:
            sock.listen()
    except OSError:
        sock.close()
        raise
    return sock


def has_family(address: Address) -> bool:
    """Return whether this machine supports the address family (IPv4 or IPv6) of an address."""
    if ":" not in address.host:
        return True
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    except OSError:
        return False
    return Path("/proc/net/if_inet6").exists()


def lowest_unprivileged_port() -> int:
    """Return the lowest port that an ordinary user may bind."""
    try:
        return int(UNPRIVILEGED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 1024


def holder(address: Address, kind: socket.SocketKind) -> SocketOwner | None:
    """Return the process whose socket prevents a bind to an address. Return None if /proc lists no such socket.

    If several sockets prevent the bind, a listening socket is chosen before the others. Among equal sockets, a socket
    of the same address family is chosen.
    """
    entries = [entry for entry in _entries(kind) if entry.inode != NO_PROCESS and _conflicts(entry, address)]
    if not entries:
        return None
    family = ipaddress.ip_address(address.host).version
    entry = min(entries, key=lambda entry: (entry.state != TCP_LISTEN, entry.host.version != family))
    return SocketOwner(entry.user_id, _process_of(entry.inode))


def process_name(process_id: int) -> str:
    """Return the name and id of a process, such as `radiusd (process 4711)`, for a message. The arguments of the
    process are left out, because they may contain secrets."""
    try:
        name = Path(f"/proc/{process_id}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    return f"{name} (process {process_id})" if name else f"process {process_id}"


def locking_process(path: Path) -> str:
    """Return the name and id of the process that holds a lock (flock) on a file, for a message. Every user can read
    /proc/locks."""
    status = path.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        # The process id is 0 for a process of another PID namespace. Processes that wait for the lock have `->`.
        if fields[1] == "FLOCK" and fields[5] == device and int(fields[4]) > 0:
            return process_name(int(fields[4]))
    return "another process"


def _entries(kind: socket.SocketKind) -> Iterator[_Entry]:
    table = "udp" if kind == socket.SOCK_DGRAM else "tcp"
    for name in (table, f"{table}6"):
        path = Path("/proc/net", name)
        for line in path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else ():
            fields = line.split()
            host, _, port = fields[1].partition(":")
            yield _Entry(_host(host), int(port, 16), int(fields[3], 16), int(fields[7]), fields[9])


def _host(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an address in /proc/net: 32-bit words in hexadecimal digits, in the machine's byte order."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    return getattr(found, "ipv4_mapped", None) or found


def _conflicts(entry: _Entry, address: Address) -> bool:
    """Return whether a socket (`entry`) can prevent a bind to an address.

    An IPv6 socket on `::` may use its port for IPv4 too, so it can prevent a bind to an IPv4 address. An IPv4 socket
    never prevents a bind to an IPv6 address, because the service's IPv6 sockets do not accept IPv4.
    """
    wanted = ipaddress.ip_address(address.host)
    if entry.port != address.port or (wanted.version == 6 and entry.host.version == 4):
        return False
    return wanted.is_unspecified or entry.host.is_unspecified or entry.host == wanted


def _process_of(inode: str) -> int | None:
    """Return the id of the first process that has the socket with this inode open. Return None if /proc denies
    access."""
    for process_id in sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()):
        try:
            if any(_link(each) == f"socket:[{inode}]" for each in Path(f"/proc/{process_id}/fd").iterdir()):
                return process_id
        except OSError:  # the process belongs to another user, or has ended
            continue
    return None


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # the descriptor was closed meanwhile
        return ""

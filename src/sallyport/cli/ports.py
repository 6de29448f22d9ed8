"""Who has a port of this machine: found out by trying, and in proc(5)."""

import socket
from contextlib import closing
from pathlib import Path

from sallyport.base.setting_values import Address

UDP = socket.SOCK_DGRAM
TCP = socket.SOCK_STREAM


def in_the_way(address: Address, kind: socket.SocketKind) -> OSError | None:
    """Try to bind an address, and let go again: what keeps it from being bound, None where nothing does."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with closing(socket.socket(family, kind)) as sock:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == TCP:  # a connection that was closed a moment ago is not in the way
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(tuple(address))
        except OSError as error:
            return error
    return None


def is_held_by(process_id: int, port: int, kind: socket.SocketKind) -> bool:
    """Whether a process has a socket on a port; yes where we may not look."""
    try:
        links = [link.readlink().name for link in Path(f"/proc/{process_id}/fd").iterdir()]
    except OSError:
        return True
    own = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    table = "udp" if kind == UDP else "tcp"
    for name in (table, f"{table}6"):
        path = Path("/proc/net", name)
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[9] in own:
                return True
    return False

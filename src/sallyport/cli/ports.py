"""The use of ports on this machine, by trial and from proc(5)."""

import socket
from contextlib import closing
from pathlib import Path

from sallyport.base.setting_values import Address

UDP = socket.SOCK_DGRAM
TCP = socket.SOCK_STREAM


def in_the_way(address: Address, kind: socket.SocketKind) -> OSError | None:
    """Bind an address and release it. Return the error that prevents it; None if it is free."""
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
    """Whether a process has a socket on a port; True if /proc denies access."""
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

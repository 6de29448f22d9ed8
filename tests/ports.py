"""Ports for servers that cannot choose one themselves.

The kernel gives each outgoing connection a port from its own range, which begins at 32,768. A port from that range may
be taken between the choice and the start of the server. So these ports are below it.
"""

import random
import socket

_FIRST, _END = 10_000, 32_768
_RANDOM = random.SystemRandom()


def free_port(following: int = 0) -> int:
    """Return a loopback port that is free over TCP and UDP.

    following: the number of the next ports that must be free as well.
    """
    while True:
        port = _RANDOM.randrange(_FIRST, _END - following)
        if all(_is_free(each) for each in range(port, port + following + 1)):
            return port


def _is_free(port: int) -> bool:
    try:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True

"""A program that binds sockets to all addresses, in a network namespace of its own, and sends a request to each
address.

It prints a line for each answer.

usage: unshare --net python -m tests.areas.login.listen.many_addresses
"""

import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import trio

from sallyport.areas.login.listen import udp
from sallyport.areas.login.listen.udp import Datagram
from sallyport.radius.duplicates import Source
from sallyport.settings.values import Address

ASKED = (("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "192.0.2.7"), ("::", "::1"), ("::", "2001:db8::7"))


def echo(send: Callable[[bytes, Source], None], datagrams: list[Datagram]) -> None:
    """Send each datagram back, followed by the number of fields in its source."""
    for octets, source, _, _ in datagrams:
        send(octets + str(len(source)).encode(), source)


async def ask(client: trio.socket.SocketType) -> str:
    """Return the answer, or the reason why there is none. The request is repeated, because a packet may be lost."""
    for _ in range(10):
        await client.send(b"hello")
        with trio.move_on_after(1):
            return (await client.recv(100)).decode()
    return f"nothing: {ip('-6 addr show dev lo')} {ip('-6 route show table all')}"


def ip(arguments: str) -> str:
    """Return the output of an ip command."""
    return subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True).stdout


async def main() -> None:
    """Send a request to each address from a connected socket, which accepts answers from no other address."""
    for arguments in ("link set lo up", "addr add 192.0.2.7/32 dev lo", "addr add 2001:db8::7/128 dev lo nodad"):
        ip(arguments)
    with trio.fail_after(60):  # the kernel enables IPv6 addresses in the background, then adds their routes
        while ip("-6 addr show dev lo tentative") or not all(
            f"local {each} " in ip("-6 route show table local") for each in ("::1", "2001:db8::7")
        ):
            await trio.sleep(0.01)
    async with trio.open_nursery() as nursery:
        for port, (bound, asked) in enumerate(ASKED, 1812):
            sock = udp.bind(Address(bound, port), "radius_auth_bind")
            answer = partial(echo, udp.sender(sock))
            nursery.start_soon(
                partial(udp.receive, owner=lambda _source: 0, refuse=lambda *_datagram: None),
                sock,
                answer,
                lambda: None,
            )
            family = socket.AF_INET6 if ":" in asked else socket.AF_INET
            client = trio.socket.socket(family, socket.SOCK_DGRAM)
            local = "::1" if ":" in asked else "127.0.0.1"
            await client.bind((local, 0))
            await client.connect((asked, port))
            sys.stdout.write(f"{asked} {await ask(client)}\n")
            client.close()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)

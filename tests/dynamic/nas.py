"""A NAS that takes Disconnect and CoA requests and answers by a script: what it sends for each datagram that it gets.

async with running_nas(nak(503)) as nas:
    await sender.ask(nas.where, Kind.DISCONNECT, SESSION)
    assert len(nas.requests) == 1
"""

import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import md5
from threading import Thread

import trio

from sallyport.dynamic.sender import Nas
from sallyport.radius.attributes import ERROR_CAUSE, pull_attributes, push_attribute
from sallyport.radius.packet import SharedSecret
from tests.areas import SECRET

Script = Callable[[bytes, int], Sequence[bytes]]
"""(a request, how many datagrams came before it) to the datagrams to send back."""


def answer(request: bytes, code: int, attributes: bytes = b"", *, secret: bytes = SECRET) -> bytes:
    """An answer to a request, put together without the codec."""
    head = bytes((code, request[1])) + (20 + len(attributes)).to_bytes(2)
    return head + md5(head + request[4:20] + attributes + secret).digest() + attributes


def ack(request: bytes, _number: int = 0) -> list[bytes]:
    """Yes."""
    return [answer(request, request[0] + 1)]


def nak(cause: int) -> Script:
    """No, for a reason."""
    return lambda request, _number: [answer(request, request[0] + 2, push_attribute(ERROR_CAUSE, cause.to_bytes(4)))]


def silent(_request: bytes, _number: int) -> list[bytes]:
    """Nothing."""
    return []


class FakeNas:
    """requests: every datagram that came, in order."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []

    def answers(self, datagram: bytes) -> Sequence[bytes]:
        """What it sends for a datagram."""
        self.requests.append(datagram)
        return self.script(datagram, len(self.requests) - 1)

    def values(self, number: int = -1) -> dict[int, bytes]:
        """The attributes of a request."""
        return dict(pull_attributes(self.requests[number], 20))


class LocalNas(FakeNas):
    """One in the test's own loop."""

    def __init__(self, script: Script, sock: trio.socket.SocketType) -> None:
        super().__init__(script)
        self._sock = sock
        self.address, self.port = sock.getsockname()[:2]

    @property
    def where(self) -> Nas:
        """Where it is asked, with the tests' secret."""
        return Nas(self.address, self.port, SharedSecret(SECRET))

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            datagram, sender = await self._sock.recvfrom(4096)
            for each in self.answers(datagram):
                await self._sock.sendto(each, sender)


@asynccontextmanager
async def running_nas(script: Script, address: str = "127.0.0.1") -> AsyncIterator[LocalNas]:
    """A NAS in the test's own loop for the time of the block."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sock:
        await sock.bind((address, 0))
        nas = LocalNas(script, sock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nas.run)
            yield nas
            nursery.cancel_scope.cancel()


class ThreadNas(FakeNas):
    """One in a thread, for a service in another process."""

    def __init__(self, script: Script, sock: socket.socket) -> None:
        super().__init__(script)
        self._sock = sock
        self.port: int = sock.getsockname()[1]

    def run(self) -> None:
        """Answer until an empty datagram comes."""
        while True:
            datagram, sender = self._sock.recvfrom(4096)
            if not datagram:
                return
            for each in self.answers(datagram):
                self._sock.sendto(each, sender)


@contextmanager
def thread_nas(script: Script, address: str = "127.0.0.1") -> Iterator[ThreadNas]:
    """A NAS in a thread for the time of the block."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        nas = ThreadNas(script, sock)
        thread = Thread(target=nas.run)
        thread.start()
        try:
            yield nas
        finally:
            sock.sendto(b"", sock.getsockname())
            thread.join()

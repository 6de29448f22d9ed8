"""A NAS that answers Disconnect and CoA requests. Its answers come from a script, which is a function that takes a
request and returns the datagrams of the answer.

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

from sallyport.areas.dynamic.sender import Nas
from sallyport.radius.attributes import ERROR_CAUSE, pull_attributes, push_attribute
from sallyport.radius.packet import SharedSecret
from tests.areas import SECRET

Script = Callable[[bytes, int], Sequence[bytes]]
"""A function that takes a request and the number of earlier requests, and returns the datagrams to send."""


def answer(request: bytes, code: int, attributes: bytes = b"", *, secret: bytes = SECRET) -> bytes:
    """Return an answer to a request. It is built without the codec of the service."""
    head = bytes((code, request[1])) + (20 + len(attributes)).to_bytes(2)
    return head + md5(head + request[4:20] + attributes + secret).digest() + attributes


def ack(request: bytes, _number: int = 0) -> list[bytes]:
    """Return an ACK."""
    return [answer(request, request[0] + 1)]


def nak(cause: int) -> Script:
    """Return a script that answers with a NAK and an Error-Cause."""
    return lambda request, _number: [answer(request, request[0] + 2, push_attribute(ERROR_CAUSE, cause.to_bytes(4)))]


def silent(_request: bytes, _number: int) -> list[bytes]:
    """Return no answer."""
    return []


class FakeNas:
    """A NAS. requests: every received datagram, in order."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []

    def answers(self, datagram: bytes) -> Sequence[bytes]:
        """Return the datagrams that answer a received one."""
        self.requests.append(datagram)
        return self.script(datagram, len(self.requests) - 1)

    def values(self, number: int = -1) -> dict[int, bytes]:
        """Return the attributes of a request."""
        return dict(pull_attributes(self.requests[number], 20))


class LocalNas(FakeNas):
    """A NAS that runs in the event loop of the test."""

    def __init__(self, script: Script, sock: trio.socket.SocketType) -> None:
        super().__init__(script)
        self._sock = sock
        self.address, self.port = sock.getsockname()[:2]

    @property
    def where(self) -> Nas:
        """The address of the NAS, with the secret of the tests."""
        return Nas(self.address, self.port, SharedSecret(SECRET))

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            datagram, sender = await self._sock.recvfrom(4096)
            for each in self.answers(datagram):
                await self._sock.sendto(each, sender)


@asynccontextmanager
async def running_nas(script: Script, address: str = "127.0.0.1") -> AsyncIterator[LocalNas]:
    """Run a NAS in the event loop of the test until the block ends."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sock:
        await sock.bind((address, 0))
        nas = LocalNas(script, sock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nas.run)
            yield nas
            nursery.cancel_scope.cancel()


class ThreadNas(FakeNas):
    """A NAS that runs in a thread, for a service in another process."""

    def __init__(self, script: Script, sock: socket.socket) -> None:
        super().__init__(script)
        self._sock = sock
        self.port: int = sock.getsockname()[1]

    def run(self) -> None:
        """Answer until an empty datagram arrives."""
        while True:
            datagram, sender = self._sock.recvfrom(4096)
            if not datagram:
                return
            for each in self.answers(datagram):
                self._sock.sendto(each, sender)


@contextmanager
def thread_nas(script: Script, address: str = "127.0.0.1") -> Iterator[ThreadNas]:
    """Run a NAS in a thread until the block ends."""
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

"""A server that sends prepared answers, octet by octet, and ignores what the requests contain."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HANG = b"(hang)"
"""Send nothing, and keep the connection open until the client closes it."""


@dataclass
class Scripted:
    """The port of the server, and the (head, body) of each request."""

    port: int
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def hang_up(self) -> None:
        """End the open connections."""
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def opened(self, sock: socket.socket) -> None:
        """Count a new connection."""
        self.connections += 1
        self._open.append(sock)

    @property
    def url(self) -> str:
        """Return the URL of the server, without TLS."""
        return f"http://127.0.0.1:{self.port}"


def answer(
    status: int, body: object, *, headers: Mapping[str, str] | None = None, kind: str = "application/json"
) -> bytes:
    """Return a complete answer. body: an object that is sent as JSON, or octets that are sent as they are."""
    octets = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Content-Type": kind, "Content-Length": str(len(octets)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status} x\r\n{lines}\r\n".encode() + octets


@contextmanager
def scripted(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """Run a server that sends one of these answers for each request.

    If an answer is empty or none is left, the server closes the connection.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(listener.getsockname()[1])
        left = list(answers)
        thread = threading.Thread(target=_serve, args=(listener, server, left, tls), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            server.hang_up()
            thread.join(30)
            assert not thread.is_alive()


def _serve(listener: socket.socket, server: Scripted, left: list[bytes], tls: ssl.SSLContext | None) -> None:
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        server.opened(sock)
        with sock, suppress(OSError):
            sock.settimeout(30)
            stream = sock if tls is None else tls.wrap_socket(sock, server_side=True)
            with stream:
                _talk(stream, server, left)


def _talk(stream: socket.socket, server: Scripted, left: list[bytes]) -> None:
    reader = stream.makefile("rb")
    while head := _head(reader):
        size = next(int(line.split(":")[1]) for line in head if line.lower().startswith("content-length:"))
        server.requests.append(("\r\n".join(head), json.loads(reader.read(size))))
        reply = left.pop(0) if left else b""
        if reply == HANG:
            reader.read(1)
        if not reply or reply == HANG:
            return
        stream.sendall(reply)
        if b"Content-Length" not in reply or len(reply.partition(b"\r\n\r\n")[2]) != _length(reply):
            return


def _head(reader: Any) -> Sequence[str]:
    lines = []
    while line := reader.readline().rstrip(b"\r\n"):
        lines.append(line.decode())
    return lines


def _length(reply: bytes) -> int:
    head = reply.partition(b"\r\n\r\n")[0].decode().lower()
    return next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))

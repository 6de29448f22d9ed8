"""The control socket, with requests that are not run."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import trio

from sallyport.listen.control import serve_control


async def test_commands_at_the_same_time(tmp_path: Path) -> None:
    """A hundred commands connect while the event loop does other work, and each is answered."""

    async def run(_: Mapping[str, object], user: str) -> bytes:
        return b"1"

    path = tmp_path / "control.sock"
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, path, run)
        with ExitStack() as peers:
            sockets = [peers.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(100)]
            for sock in sockets:
                sock.setblocking(False)
                sock.connect(str(path))
            for sock in sockets:
                sock.sendall(b'{"command": "x"}\n')
                stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
                assert await stream.receive_some() == b'{"result": 1}\n'
        nursery.cancel_scope.cancel()

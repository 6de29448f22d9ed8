"""Tests of the control socket, with requests whose commands are not run."""

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import trio

from sallyport.base.errors import FieldError, Invalid
from sallyport.base.wire import Row
from sallyport.service.commands import _encoded
from sallyport.service.control import serve_control


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


async def test_a_refusal_has_its_fields(tmp_path: Path) -> None:
    """The answer has each wrong field with its message, and shows whether the message is a sentence."""

    async def run(_: Mapping[str, object], user: str) -> bytes:
        raise Invalid("invalid a", (FieldError("a", "must be a number"), FieldError("b", "is missing")))

    path = tmp_path / "control.sock"
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, path, run)
        async with await trio.open_unix_socket(str(path)) as stream:
            await stream.send_all(b'{"command": "x"}\n')
            answer = json.loads(await stream.receive_some())
        nursery.cancel_scope.cancel()
    assert answer == {
        "error": "invalid a; a must be a number; b is missing",
        "status": 400,
        "fields": [
            {"field": "a", "message": "must be a number"},
            {"field": "b", "message": "is missing"},
        ],
    }


async def test_other_tasks_run_while_a_plan_is_encoded() -> None:
    """The steps of a large plan are encoded in parts, so that no login waits for the whole answer."""
    plan: Row = {"counts": {"added": 50_000}, "steps": [{"sign": "+", "name": f"c{n}"} for n in range(50_000)]}
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        octets = await _encoded(plan)
        nursery.cancel_scope.cancel()
    assert json.loads(octets) == plan
    assert turns > 2

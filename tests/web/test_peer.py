"""Requests that wait for something leave their places to others, and take them again."""

from contextlib import nullcontext

import trio
from starlette.types import Receive, Scope, Send

from sallyport.web.connection import Limits
from sallyport.web.peer import parked
from tests.web.serving import GOOD, Served, read_answer, serving

WAIT = GOOD.replace(b"/healthz", b"/wait")


class Waiting:
    """An app whose /wait answers when it is let, parked or holding its place; other paths answer at once."""

    def __init__(self) -> None:
        self.let = trio.Event()
        self.waiting = 0
        self.parks = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/wait":
            self.waiting += 1
            with parked() if self.parks else nullcontext():
                await self.let.wait()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


async def waits(running: Served, app: Waiting, count: int) -> list[trio.abc.Stream]:
    """Connections whose requests wait."""
    streams: list[trio.abc.Stream] = []
    while len(streams) < count:
        streams.append(await running.connect())
        await streams[-1].send_all(WAIT)
        with trio.fail_after(30):
            while app.waiting < len(streams):
                await trio.sleep(0.001)
    return streams


async def test_parked_requests_keep_nobody_out() -> None:
    """Ten that wait, where two connections have room, and another is answered; so are the ten at last."""
    app = Waiting()
    async with serving(app, limits=Limits(connections=2)) as running:
        streams = await waits(running, app, 10)
        assert await running.answers()
        app.let.set()
        for stream in streams:
            assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
            await stream.aclose()


async def test_places_are_paid_back() -> None:
    """After more requests than there are places went on at once, the limit holds as before: no place is gone, and none
    was made."""
    app = Waiting()
    async with serving(app, limits=Limits(connections=2, idle_s=60)) as running:
        streams = await waits(running, app, 10)
        app.let.set()
        for stream in streams:
            await read_answer(stream)
            await stream.aclose()
        app.let, app.waiting, app.parks = trio.Event(), 0, False
        streams = await waits(running, app, 2)
        third = await running.connect()
        await third.send_all(GOOD)
        with trio.move_on_after(0.3) as patience:
            await third.receive_some(1)
        assert patience.cancelled_caught, "a third connection was served at once"
        app.let.set()
        for stream in streams:
            await read_answer(stream)
            await stream.aclose()
        assert (await read_answer(third)).startswith(b"HTTP/1.1 200")
        await third.aclose()


async def test_parking_outside_of_a_connection_is_nothing() -> None:
    """Work that the command line asks for may wait in the same way."""
    with parked():
        await trio.lowlevel.checkpoint()
